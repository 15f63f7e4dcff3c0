// SPDX-License-Identifier: Apache-2.0
// leverage.cpp: reflectors of the columns that the rank leaves, and blocks of rows merged in a
// tree.
#include "core/solve/results/leverage.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/eigen/householder.hpp"
#include "core/eigen/row_sum.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/strips.hpp"
#include "core/solve/ranked/rows.hpp"
#include "core/solve/ranked/truncated_qr.hpp"

namespace qrtool {
namespace {

using strips::CompensatedSum;
template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

/// The columns of A by powers of two to norms in [1/2, 1), which changes no digit of them; a column
/// of zeros stays.
template <class S>
Eigen::VectorXd scale_columns(Matrix<S>& a) {
  Eigen::VectorXd factors = Eigen::VectorXd::Ones(a.cols());
  // Squares of very large and very small numbers leave the range of float64.
  constexpr int most_exponent = 1023;
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    const Eigen::Map<const Eigen::VectorXd> numbers(
        reinterpret_cast<const double*>(a.col(j).data()), parts_of<S> * a.rows());
    const double largest = numbers.cwiseAbs().maxCoeff();
    if (!(largest > 0)) continue;
    factors(j) = std::ldexp(1.0, std::min(-std::ilogb(largest), most_exponent));
    int exponent = 0;
    std::frexp((a.col(j) * factors(j)).norm(), &exponent);
    factors(j) = std::ldexp(factors(j), -exponent);
    a.col(j) *= factors(j);
  }
  return factors;
}

/// Returns the factor R (k x n) of the given rows, with zeros below the diagonal, computed by
/// reflectors with compensated sums.
template <class S>
Matrix<S> triangle_of(Matrix<S> rows) {
  householder::Vector<S> tau;
  householder::factor<S>(rows, tau);
  return rows.topRows(tau.size()).template triangularView<Eigen::Upper>();
}

/// The columns that count, the first `rank` of an order by which every next one has the most left.
struct CountedColumns {
  index_t rank = 0;
  std::vector<int> order;
};
template <class S>
CountedColumns counted_columns(const Matrix<S>& r, const SolveProblem& problem,
                               const std::optional<index_t>& rank) {
  const TruncatedQr<S> pivoted(r, problem.rank.tolerance, /*is_complete=*/true);
  return {rank ? std::min<index_t>(*rank, r.rows()) : pivoted.rank(), pivoted.permutation()};
}

/// Column j of the result is column order[j].
template <class M>
Matrix<typename M::Scalar> columns_of(const M& all, const CountedColumns& counted) {
  Matrix<typename M::Scalar> some(all.rows(), counted.rank);
  for (index_t j = 0; j < counted.rank; ++j)
    some.col(j) = all.col(counted.order[static_cast<std::size_t>(j)]);
  return some;
}

/// Clamps a leverage to 0 .. 1, and adds the difference to the error.
double within_bounds(double h, LeverageReport& report, CompensatedSum& sum) {
  sum.add(h);
  report.error = std::max({report.error, -h, h - 1});
  return std::clamp(h, 0.0, 1.0);
}

void judge_sum(const SolveProblem& problem, double sum, LeverageReport& report) {
  const auto rank = static_cast<double>(std::max<index_t>(report.rank, 1));
  const double apart = (sum - static_cast<double>(report.rank)) / rank;
  // With a ridge the sum is at most the rank.
  report.error = std::max(report.error, problem.ridge > 0 ? apart : std::abs(apart));
  if (std::isnan(sum)) report.error = sum;
}

template <class S>
Matrix<S> stacked(const Matrix<S>& above, const Matrix<S>& below) {
  Matrix<S> all(above.rows() + below.rows(), below.cols());
  all << above, below;
  return all;
}

/// Returns the rows of the ridge.
template <class S>
Matrix<S> ridge_rows(const SolveProblem& problem) {
  const index_t n = problem.ridge > 0 ? problem.n : 0;
  Matrix<S> rows = Matrix<S>::Zero(n, problem.n);
  for (index_t j = 0; j < n; ++j) rows(j, j) = problem.penalty(j);
  return rows;
}

/// Calls work(number in the wave, first row, rows) for the blocks of all waves, and merge(number)
/// in order.
template <class S, class Work, class Merge>
void for_blocks(const SolveProblem& problem, int threads, const LargeRows<S>& in, Work work,
                Merge merge) {
  const index_t step = leverage_block_rows(problem.n), wave = step * threads;
  for (index_t first = 0; first < problem.m; first += wave) {
    const index_t count = std::min(wave, problem.m - first), blocks = (count + step - 1) / step;
    in.read(first, count);
    parallel_for(blocks, threads, [&](index_t i, int) {
      const index_t start = first + i * step;
      RowMajor<S> block(std::min(step, problem.m - start), problem.n);
      in.rows(start, {block.data(), block.rows(), block.cols(), block.cols()});
      work(i, block);
    });
    for (index_t i = 0; i < blocks; ++i) merge(i, first + i * step);
  }
}

/// X := R^-H X
template <class S>
void solve_adjoint(const Matrix<S>& r, Matrix<S>& x) {
  r.template triangularView<Eigen::Upper>().adjoint().solveInPlace(x);
}

/// The upper triangular U with G = U^H U.
template <class S>
Matrix<S> cholesky(const Matrix<S>& gram) {
  Matrix<S> u = gram;
  for (Eigen::Index j = 0; j < u.cols(); ++j) {
    S* const column = u.col(j).data();
    for (Eigen::Index i = 0; i < j; ++i)
      column[i] = (column[i] - conjugate_dot(u.col(i).data(), column, i)) / real_part(u(i, i));
    column[j] = std::sqrt(real_part(column[j] - conjugate_dot(column, column, j)));
  }
  return u;
}

/// Kahan's sum of matrices.
template <class S>
struct MatrixSum {
  explicit MatrixSum(index_t n) : sum(Matrix<S>::Zero(n, n)), lost(sum) {}
  void add(const Matrix<S>& term) {
    const Matrix<S> corrected = term - lost, next = sum + corrected;
    lost = (next - sum) - corrected;
    sum = next;
  }
  Matrix<S> sum, lost;
};

/// Returns Z Z^H. If rows of A are alike, all terms are equal, and a plain sum of many terms rounds
/// one way.
template <class S>
Matrix<S> gram_of(const Matrix<S>& z) {
  MatrixSum<S> gram(z.rows());
  for (Eigen::Index i = 0; i < z.cols(); i += householder::part_rows) {
    const auto part = z.middleCols(i, std::min(householder::part_rows, z.cols() - i));
    gram.add(part * part.adjoint());
  }
  return gram.sum;
}

/// R of blocks of rows that come one after another. Two R of equally many blocks are merged, so
/// that rounding errors grow with the logarithm of the number of blocks.
template <class S>
class TriangleTree {
 public:
  void add(Matrix<S> r) {
    index_t blocks = 1;
    for (; !parts_.empty() && parts_.back().first == blocks; blocks *= 2) merge_last(r);
    parts_.emplace_back(blocks, std::move(r));
  }
  /// Returns R of all blocks and of `rows`.
  Matrix<S> finish(const Matrix<S>& rows) {
    Matrix<S> r = rows;
    while (!parts_.empty()) merge_last(r);
    return r;
  }

 private:
  void merge_last(Matrix<S>& r) {
    r = triangle_of<S>(stacked(parts_.back().second, r));
    parts_.pop_back();
  }

  std::vector<std::pair<index_t, Matrix<S>>> parts_;
};

/// R of all rows of a matrix and of the ridge.
template <class S>
Matrix<S> triangle_of_rows(const SolveProblem& problem, int threads, const LargeRows<S>& in) {
  std::vector<Matrix<S>> parts(static_cast<std::size_t>(threads));
  TriangleTree<S> tree;
  for_blocks(
      problem, threads, in,
      [&](index_t i, const RowMajor<S>& block) { parts[i] = triangle_of<S>(block); },
      [&](index_t i, index_t) { tree.add(std::move(parts[i])); });
  return tree.finish(ridge_rows<S>(problem));
}

/// Z^H for Z = A P R^-1 of some rows, r columns.
template <class S>
struct Whitener {
  Eigen::VectorXd factors;
  CountedColumns counted;
  Matrix<S> r;  // r x r, upper

  Matrix<S> operator()(const RowMajor<S>& rows) const {
    // Z R = A P D
    Matrix<S> z = columns_of(rows * factors.asDiagonal(), counted).adjoint();
    solve_adjoint(r, z);
    return z;
  }
};

}  // namespace

bool is_small_for_leverage(index_t m, index_t n) {
  constexpr index_t most_entries = 1 << 18;
  return m * std::max<index_t>(n, 1) <= most_entries;
}

index_t leverage_block_rows(index_t n) { return std::max<index_t>(2 * n, 2048); }

std::size_t leverage_bytes(const SolveProblem& problem, int threads) {
  const index_t n = problem.n, of_block = 3 * leverage_block_rows(n) * n + 2 * n * n;
  const auto blocks = static_cast<std::size_t>(problem.m / leverage_block_rows(n) + 1);
  const index_t of_tree = (8 + std::bit_width(blocks)) * n * n;
  return static_cast<std::size_t>((of_block * threads + of_tree) * parts_in(problem.type)) *
         sizeof(double);
}

template <class S>
LeverageReport small_leverages(const SolveProblem& problem, const std::optional<index_t>& rank,
                               MatrixView<S> rows, std::span<double> leverages) {
  using Strided = Eigen::Map<const RowMajor<S>>;
  LeverageReport report{.rank = 0, .error = 0};
  std::fill(leverages.begin(), leverages.end(), 0.0);
  if (rows.rows == 0 || rows.cols == 0) return report;
  Matrix<S> a = stacked<S>(Strided(rows.data, rows.rows, rows.cols), ridge_rows<S>(problem));
  scale_columns(a);
  Matrix<S> reflectors = a;
  householder::Vector<S> tau;
  householder::factor<S>(reflectors, tau);
  const Matrix<S> r = reflectors.topRows(tau.size()).template triangularView<Eigen::Upper>();
  const CountedColumns counted = counted_columns(r, problem, rank);
  if (counted.rank < a.cols()) {
    reflectors = columns_of(a, counted);
    householder::factor<S>(reflectors, tau);
  }
  report.rank = counted.rank;
  Matrix<S> q(a.rows(), report.rank);
  householder::form_q<S>(reflectors, tau, q);
  CompensatedSum sum;
  for (index_t i = 0; i < rows.rows; ++i)
    leverages[static_cast<std::size_t>(i)] = within_bounds(q.row(i).squaredNorm(), report, sum);
  judge_sum(problem, sum.sum, report);
  return report;
}

template <class S>
LeverageReport large_leverages(const SolveProblem& problem, const std::optional<index_t>& rank,
                               int threads, const LargeRows<S>& in, const KeepLeverages& keep) {
  LeverageReport report{.rank = 0, .error = 0};
  std::vector<Matrix<S>> parts(static_cast<std::size_t>(threads));
  Matrix<S> r = triangle_of_rows(problem, threads, in);
  Whitener<S> whitener{.factors = scale_columns(r), .counted = {}, .r = {}};
  whitener.counted = counted_columns(r, problem, rank);
  report.rank = whitener.counted.rank;
  whitener.r = triangle_of<S>(columns_of(r, whitener.counted));
  MatrixSum<S> gram(report.rank);
  gram.add(gram_of(whitener(ridge_rows<S>(problem))));
  for_blocks(
      problem, threads, in,
      [&](index_t i, const RowMajor<S>& block) { parts[i] = gram_of(whitener(block)); },
      [&](index_t i, index_t) { gram.add(parts[i]); });
  const Matrix<S> u = cholesky(gram.sum);
  std::vector<Eigen::VectorXd> found(parts.size());
  CompensatedSum sum;
  for_blocks(
      problem, threads, in,
      [&](index_t i, const RowMajor<S>& block) {
        Matrix<S> z = whitener(block);
        solve_adjoint(u, z);
        found[i] = z.colwise().squaredNorm();
      },
      [&](index_t i, index_t first) {
        for (double& h : found[i]) h = within_bounds(h, report, sum);
        keep(first, std::span(found[i].data(), static_cast<std::size_t>(found[i].size())));
      });
  judge_sum(problem, sum.sum, report);
  return report;
}

template <class S>
index_t rank_of_rows(const SolveProblem& problem, int threads, const LargeRows<S>& in) {
  Matrix<S> r = triangle_of_rows(problem, threads, in);
  if (r.size() == 0) return 0;
  scale_columns(r);
  return counted_columns<S>(r, problem, std::nullopt).rank;
}

#define QRTOOL_FOR(S)                                                                              \
  template LeverageReport small_leverages(const SolveProblem&, const std::optional<index_t>&,      \
                                          MatrixView<S>, std::span<double>);                       \
  template LeverageReport large_leverages(const SolveProblem&, const std::optional<index_t>&, int, \
                                          const LargeRows<S>&, const KeepLeverages&);              \
  template index_t rank_of_rows(const SolveProblem&, int, const LargeRows<S>&);
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
