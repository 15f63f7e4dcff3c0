// SPDX-License-Identifier: Apache-2.0
// apply.cpp: Q by products in tiles of rows, R and reflectors in place, in blocks of right sides.
#include "core/apply/apply.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/eigen/householder.hpp"
#include "core/eigen/row_sum.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool {
namespace {

using householder::Complex128;
static_assert(rows_at_once % rows_of_tile == 0 && rows_at_once % rows_of_run == 0);

/// Rounds to the type in which x is stored.
template <class S>
void round(const ApplyProblem& p, const MatrixView<S>& x) {
  if (!p.is_single) return;
  const MatrixView<double> numbers = interleaved(x);
  mapped(numbers) = mapped(numbers).cast<float>().cast<double>();
}

double ratio(long double error, long double reference) {
  return error == 0 ? 0 : static_cast<double>(error / reference);
}

/// of_bar: the norm of what was rounded.
SideReport judged(const ApplyProblem& p, double error, double of_bar, bool x_is_finite) {
  const double bar = standard_bars(p.m, p.n, p.precision, {.norm = of_bar}).residual;
  return {.error = error,
          .bar = bar,
          .status = !x_is_finite   ? Status::r_overflows
                    : error <= bar ? Status::ok
                                   : Status::above_bar};
}

template <class S>
void give_up(Status status, const MatrixView<S>& x, std::span<SideReport> reports) {
  mapped(x).setConstant(not_a_number<S>());
  std::fill(reports.begin(), reports.end(), SideReport{.status = status});
}

/// Reflectors, or R in the order of A's columns.
template <class S>
struct InPlace {
  using Matrix = householder::Matrix<S>;

  InPlace(const ApplyProblem& problem, const AppliedFactors<S>& f) : p(problem) {
    const index_t k = p.has_reflectors ? std::min(f.v.rows, f.v.cols) : f.r.cols;
    if (uses_q(p.product)) {
      v = mapped(f.v).leftCols(k);
      tau = mapped(MatrixView<const S>{f.tau, 1, k, k}).transpose();
    } else {
      v = (p.has_reflectors ? mapped(f.v) : mapped(f.r)).topRows(k);
      v.template triangularView<Eigen::StrictlyLower>().setZero();
      order.setIdentity(k);
      if (f.p != nullptr) std::copy_n(f.p, k, order.indices().data());
    }
  }
  void apply(Matrix& c, bool is_inverse) const {
    if (uses_q(p.product))
      return householder::apply(v, tau, (p.product == Product::qt) != is_inverse, c);
    // P leaves the product with R^-1 or R^H, and enters those with R or R^-H.
    const bool leaves = (p.product == Product::rinv) != is_inverse;
    if (!leaves) c = order.transpose() * c;
    apply_upper(v, p.product == Product::rinvt, !is_inverse, c);
    if (leaves) c = order * c;
  }
  /// c := the product, or c := given - the inverse product, by reflectors in a wider type.
  void apply_widely(Matrix& c, const Matrix* given) const {
    using W = householder::WiderType<S>;
    const bool is_adjoint = (p.product == Product::qt) == (given == nullptr);
    std::vector<W> column(static_cast<std::size_t>(c.rows()));
    for (index_t j = 0; j < c.cols(); ++j) {
      std::copy_n(c.col(j).data(), c.rows(), column.begin());
      for (index_t step = 0; step < v.cols(); ++step) {
        const index_t h = is_adjoint ? step : v.cols() - 1 - step;
        W sum = column[h];
        for (index_t i = h + 1; i < c.rows(); ++i) sum += W(conjugate(v(i, h))) * column[i];
        sum *= W(is_adjoint ? conjugate(tau(h)) : tau(h));
        column[h] -= sum;
        for (index_t i = h + 1; i < c.rows(); ++i) column[i] -= W(v(i, h)) * sum;
      }
      for (index_t i = 0; i < c.rows(); ++i)
        c(i, j) = S(given == nullptr ? column[i] : W((*given)(i, j)) - column[i]);
    }
  }

  ApplyProblem p;
  Matrix v;
  householder::Vector<S> tau;
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, index_t> order;
};

template <class S>
void apply_in_place(const InPlace<S>& factors, const MatrixView<const S>& b, const MatrixView<S>& x,
                    bool is_wide, std::span<SideReport> reports) {
  const ApplyProblem& p = factors.p;
  const householder::Matrix<S> given = mapped(b);
  householder::Matrix<S> c = given;
  is_wide ? factors.apply_widely(c, nullptr) : factors.apply(c, false);
  mapped(x) = c;
  round(p, x);
  c = mapped(x);
  if (is_wide) {
    factors.apply_widely(c, &given);
  } else {
    factors.apply(c, true);
    c = given - c;
  }
  const double of_r = uses_q(p.product) ? 0 : factors.v.reshaped().stableNorm();
  for (index_t j = 0; j < b.cols; ++j) {
    const double of_x = mapped(x).col(j).stableNorm(), of_b = given.col(j).stableNorm(),
                 of_d = c.col(j).stableNorm();
    const double norms = ratio(std::abs(of_x - of_b), of_b) * (1 + ratio(of_x, of_b));
    reports[static_cast<std::size_t>(j)] =
        uses_q(p.product)
            ? judged(p, std::max(ratio(of_d, of_b), norms), of_b, mapped(x).col(j).allFinite())
            : judged(p, ratio(of_d, of_r * of_x), std::min(of_r, 1.0) * of_x,
                     mapped(x).col(j).allFinite());
  }
}

template <class S>
void apply_others(const ApplyProblem& p, const AppliedFactors<S>& f, const MatrixView<const S>& b,
                  const MatrixView<S>& x, std::span<SideReport> reports) {
  const InPlace<S> factors(p, f);
  if (!factors.v.allFinite() || !factors.tau.allFinite())
    return give_up(Status::non_finite, x, reports);
  if (!uses_q(p.product) && (factors.v.diagonal().array() == S(0)).any())
    return give_up(Status::r_overflows, x, reports);
  apply_in_place(factors, b, x, false, reports);
  for (std::size_t j = 0; j < reports.size(); ++j) {
    const MatrixView<const S> of_b{b.data + j, b.rows, 1, b.ld};
    const MatrixView<S> of_x{x.data + j, x.rows, 1, x.ld};
    if (!mapped(of_b).allFinite()) give_up(Status::non_finite, of_x, reports.subspan(j, 1));
    // The bar of few rows is near the rounding errors of float64.
    if (!uses_q(p.product) || f.v.rows > rows_near_bar || reports[j].status != Status::above_bar)
      continue;
    apply_in_place(factors, of_b, of_x, true, reports.subspan(j, 1));
    reports[j].tries = 2;
  }
}

/// Some right sides of a product with Q.
template <class S>
struct QBlock {
  enum Square { of_b, of_x, of_d };

  QBlock(const ApplyProblem& problem, index_t sides)
      : p(problem), product(std::min(p.b_rows, p.x_rows), sides), squares(3, sides) {}

  void take_product(const MatrixView<const S>& q, const MatrixView<const S>& c) {
    product.add(q.rows, [&](index_t i, index_t rows) {
      add_adjoint_product<S>(q.row_block(i, rows), c.row_block(i, rows), view_of(product.tile));
    });
  }
  void take_squares(Square which, const MatrixView<const S>& c) {
    squares.add(c.rows, [&](index_t first, index_t rows) {
      for (index_t i = first; i < first + rows; ++i)
        for (index_t j = 0; j < c.cols; ++j)
          squares.tile(which, j) += square_of(householder::WiderType<S>(c(i, j)));
    });
  }
  /// Between both passes over the rows: all of X, or of B.
  void take(const MatrixView<S>& all, bool q_is_finite) {
    if (p.product == Product::qt) {
      mapped(all) = product.sum;
      round(p, all);
      product = {all.rows, all.cols};
    }
    given = p.product == Product::qt ? RowMajor<S>(-mapped(all)) : mapped(all);
    take_squares(p.product == Product::qt ? of_x : of_b, all);
    for (index_t j = 0; j < all.cols; ++j) {
      if (q_is_finite && std::isfinite(squares.sum(of_b, j))) continue;
      squares.sum(of_b, j) = not_measured;
      given.col(j).setConstant(not_a_number<S>());
      if (p.product == Product::qt) mapped(all).col(j) = given.col(j);
    }
  }
  /// In the second pass: rows of B, or the place for those of X.
  void measure(const MatrixView<const S>& q, const MatrixView<S>& rows) {
    if (p.product == Product::qt) {
      RowMajor<S> d = mapped(rows);
      add_product<S>(q, view_of(given), view_of(d));
      take_squares(of_d, view_of(d));
      if (p.b_rows != p.x_rows) take_product(q, view_of(d));
      return;
    }
    mapped(rows).setZero();
    add_product<S>(q, view_of(given), rows);
    round(p, rows);
    take_squares(of_x, rows);
    take_product(q, rows);
  }
  SideReport report(index_t j) const {
    const long double b = squares.sum(of_b, j), x = squares.sum(of_x, j), d = squares.sum(of_d, j);
    if (!std::isfinite(b)) return {.status = Status::non_finite};
    const long double error = p.product == Product::q
                                  ? (given.col(j) - product.sum.col(j)).stableNorm()
                              : p.b_rows == p.x_rows ? std::sqrt(d)
                                                     : product.sum.col(j).stableNorm();
    return judged(p, std::max(ratio(error, std::sqrt(b)), ratio(std::abs(b - x - d), b)),
                  static_cast<double>(std::sqrt(b)), std::isfinite(x));
  }

  ApplyProblem p;
  RowMajor<S> given;  // -X of qt, B of q
  RowSum<S> product;  // Q^H B, Q^H (B - Q X) or Q^H X
  // The squares of each right side, which may exceed the range of double. NaN: no x is found.
  RowSum<long double> squares;
};

template <class S>
MatrixView<S> columns_of(const MatrixView<S>& all, index_t block) {
  const index_t first = block * sides_at_once;
  return {all.data + first, all.rows, std::min(sides_at_once, all.cols - first), all.ld};
}

}  // namespace

template <class S>
void apply_by_rows(const ApplyProblem& p, const RowsOfQ<S>& rows, MatrixView<S> all,
                   std::span<SideReport> reports, int threads) {
  std::vector<QBlock<S>> blocks;
  for (index_t j = 0; j < all.cols; j += sides_at_once)
    blocks.emplace_back(p, std::min(sides_at_once, all.cols - j));
  const auto for_blocks = [&](const MatrixView<S>& sides, auto step) {
    parallel_for(std::ssize(blocks), threads, [&](index_t i, int) {
      step(blocks[static_cast<std::size_t>(i)], columns_of(sides, i));
    });
  };
  bool q_is_finite = true;
  for (index_t i = 0; i < rows.m; i += rows.at_once) {
    const index_t count = std::min(rows.at_once, rows.m - i);
    const MatrixView<const S> q = rows.q(i, count);
    q_is_finite = q_is_finite && mapped(q).allFinite();
    if (p.product == Product::qt)
      for_blocks(rows.sides(i, count), [&](QBlock<S>& block, const MatrixView<S>& b) {
        block.take_product(q, b);
        block.take_squares(QBlock<S>::of_b, b);
      });
  }
  for_blocks(all, [&](QBlock<S>& block, const MatrixView<S>& x) { block.take(x, q_is_finite); });
  for (index_t i = 0; i < rows.m; i += rows.at_once) {
    const index_t count = std::min(rows.at_once, rows.m - i);
    const MatrixView<const S> q = rows.q(i, count);
    const MatrixView<S> sides = rows.sides(i, count);
    for_blocks(sides, [&](QBlock<S>& block, const MatrixView<S>& part) {
      for (index_t t = 0; t < count; t += rows_at_once) {
        const index_t tile = std::min(rows_at_once, count - t);
        block.measure(q.row_block(t, tile), part.row_block(t, tile));
      }
    });
    if (p.product == Product::q) rows.write(sides);
  }
  for (index_t j = 0; j < all.cols; ++j)
    reports[static_cast<std::size_t>(j)] =
        blocks[static_cast<std::size_t>(j / sides_at_once)].report(j % sides_at_once);
}

template <class S>
void apply_factors(const ApplyProblem& p, const AppliedFactors<S>& f, MatrixView<const S> b,
                   MatrixView<S> x, std::span<SideReport> reports, int threads) {
  if (uses_q(p.product) && !p.has_reflectors) {
    const MatrixView<S> given{const_cast<S*>(b.data), b.rows, b.cols, b.ld};  // is only read
    const bool is_adjoint = p.product == Product::qt;
    const RowsOfQ<S> rows{.m = f.q.rows,
                          .at_once = std::max<index_t>(f.q.rows, 1),
                          .q = [&](index_t, index_t) { return f.q; },
                          .sides = [&](index_t, index_t) { return is_adjoint ? given : x; }};
    return apply_by_rows(p, rows, is_adjoint ? x : given, reports, threads);
  }
  parallel_for((b.cols + sides_at_once - 1) / sides_at_once, threads, [&](index_t i, int) {
    const MatrixView<const S> sides = columns_of(b, i);
    apply_others(p, f, sides, columns_of(x, i),
                 reports.subspan(static_cast<std::size_t>(i * sides_at_once),
                                 static_cast<std::size_t>(sides.cols)));
  });
}

std::size_t ApplyProblem::workspace_bytes(index_t sides, std::size_t element_bytes) const {
  const index_t rows = std::max(b_rows, x_rows), inner = std::min(b_rows, x_rows);
  const index_t entries = uses_q(product) && !has_reflectors
                              ? (5 * inner + 2 * rows_at_once) * sides
                              : 2 * rows * (std::min(m, n) + 4 * sides);
  return static_cast<std::size_t>(entries) * element_bytes;
}

template void apply_factors(const ApplyProblem&, const AppliedFactors<double>&,
                            MatrixView<const double>, MatrixView<double>, std::span<SideReport>,
                            int);
template void apply_by_rows(const ApplyProblem&, const RowsOfQ<double>&, MatrixView<double>,
                            std::span<SideReport>, int);
template void apply_factors(const ApplyProblem&, const AppliedFactors<Complex128>&,
                            MatrixView<const Complex128>, MatrixView<Complex128>,
                            std::span<SideReport>, int);
template void apply_by_rows(const ApplyProblem&, const RowsOfQ<Complex128>&, MatrixView<Complex128>,
                            std::span<SideReport>, int);

}  // namespace qrtool
