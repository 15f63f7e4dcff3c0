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
template <class S>
using Rows = RowMajor<S>;
template <class S>
using Given = Eigen::Map<const Rows<S>, 0, Eigen::OuterStride<>>;

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

/// Reflectors, or R in the order of A's columns, in the type C.
template <class C>
struct InPlace {
  template <class S>
  InPlace(const ApplyProblem& problem, const AppliedFactors<S>& f) : p(problem) {
    const index_t k = p.has_reflectors ? std::min(f.v.rows, f.v.cols) : f.r.cols;
    if (uses_q(p.product)) {
      v = mapped(f.v).leftCols(k).template cast<C>();
      tau = mapped(MatrixView<const S>{f.tau, 1, k, k}).transpose().template cast<C>();
    } else {
      v = (p.has_reflectors ? mapped(f.v) : mapped(f.r)).topRows(k).template cast<C>();
      v.template triangularView<Eigen::StrictlyLower>().setZero();
      order.setIdentity(k);
      if (f.p != nullptr) std::copy_n(f.p, k, order.indices().data());
    }
  }
  void apply(householder::Matrix<C>& c, bool is_inverse) const {
    const auto r = v.template triangularView<Eigen::Upper>();
    if (uses_q(p.product)) {
      householder::apply(v, tau, (p.product == Product::qt) != is_inverse, c);
    } else if (p.product == Product::rinv) {
      c = is_inverse ? Matrix(r * (order.transpose() * c)) : Matrix(order * r.solve(c));
    } else {
      c = is_inverse ? Matrix(order * (r.adjoint() * c))
                     : Matrix(r.adjoint().solve(order.transpose() * c));
    }
  }
  using Matrix = householder::Matrix<C>;
  ApplyProblem p;
  Matrix v;
  householder::Vector<C> tau;
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, index_t> order;
};

template <class C, class S>
void apply_in_place(const ApplyProblem& p, const InPlace<C>& factors, const MatrixView<const S>& b,
                    const MatrixView<S>& x, std::span<SideReport> reports) {
  const householder::Matrix<C> given = mapped(b).template cast<C>();
  householder::Matrix<C> c = given;
  factors.apply(c, false);
  mapped(x) = c.template cast<S>();
  round(p, x);
  c = mapped(x).template cast<C>();
  factors.apply(c, true);
  const double of_r =
      uses_q(p.product) ? 0 : static_cast<double>(factors.v.reshaped().stableNorm());
  for (index_t j = 0; j < b.cols; ++j) {
    const auto of_x = static_cast<double>(mapped(x).col(j).stableNorm()),
               of_b = static_cast<double>(given.col(j).stableNorm());
    const long double d = (given.col(j) - c.col(j)).stableNorm();
    const double norms = ratio(std::abs(of_x - of_b), of_b) * (1 + ratio(of_x, of_b));
    reports[static_cast<std::size_t>(j)] =
        uses_q(p.product)
            ? judged(p, std::max(ratio(d, of_b), norms), of_b, mapped(x).col(j).allFinite())
            : judged(p, ratio(d, of_r * of_x), std::min(of_r, 1.0) * of_x,
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
  apply_in_place(p, factors, b, x, reports);
  for (std::size_t j = 0; j < reports.size(); ++j) {
    const MatrixView<const S> of_b{b.data + j, b.rows, 1, b.ld};
    const MatrixView<S> of_x{x.data + j, x.rows, 1, x.ld};
    if (!mapped(of_b).allFinite()) give_up(Status::non_finite, of_x, reports.subspan(j, 1));
    // The bar of few rows is near the rounding errors of float64.
    if (!uses_q(p.product) || f.v.rows > rows_near_bar || reports[j].status != Status::above_bar)
      continue;
    apply_in_place(p, InPlace<householder::WiderType<S>>(p, f), of_b, of_x, reports.subspan(j, 1));
    reports[j].tries = 2;
  }
}

/// Some right sides of a product with Q.
template <class S>
struct QBlock {
  enum Square { of_b, of_x, of_d };

  QBlock(const ApplyProblem& problem, index_t sides)
      : p(problem), product(std::min(p.b_rows, p.x_rows), sides), squares(3, sides) {}

  void add_product(const Given<S>& q, const Eigen::Ref<const Rows<S>>& c) {
    product.add(q.rows(), [&](index_t i, index_t rows) {
      product.tile.noalias() += q.middleRows(i, rows).adjoint() * c.middleRows(i, rows);
    });
  }
  void add_squares(Square which, const Eigen::Ref<const Rows<S>>& c) {
    squares.add(c.rows(), [&](index_t first, index_t rows) {
      for (index_t i = first; i < first + rows; ++i)
        for (index_t j = 0; j < c.cols(); ++j)
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
    given = mapped(all);
    add_squares(p.product == Product::qt ? of_x : of_b, given);
    for (index_t j = 0; j < all.cols; ++j) {
      if (q_is_finite && std::isfinite(squares.sum(of_b, j))) continue;
      squares.sum(of_b, j) = not_measured;
      given.col(j).setConstant(not_a_number<S>());
      if (p.product == Product::qt) mapped(all).col(j) = given.col(j);
    }
  }
  /// In the second pass: rows of B, or the place for those of X.
  void measure(const Given<S>& q, const MatrixView<S>& rows) {
    if (p.product == Product::qt) {
      const Rows<S> d = mapped(rows) - q * given;
      add_squares(of_d, d);
      if (p.b_rows != p.x_rows) add_product(q, d);
      return;
    }
    mapped(rows).noalias() = q * given;
    round(p, rows);
    add_squares(of_x, mapped(rows));
    add_product(q, mapped(rows));
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
  Rows<S> given;      // X of qt, B of q
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
    const Given<S> q = mapped(rows.q(i, count));
    q_is_finite = q_is_finite && q.allFinite();
    if (p.product == Product::qt)
      for_blocks(rows.sides(i, count), [&](QBlock<S>& block, const MatrixView<S>& b) {
        block.add_product(q, mapped(b));
        block.add_squares(QBlock<S>::of_b, mapped(b));
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
        block.measure(mapped(q.row_block(t, tile)), part.row_block(t, tile));
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
