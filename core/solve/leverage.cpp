// SPDX-License-Identifier: Apache-2.0
// leverage.cpp: pivoted QR of scaled columns, and blocks of rows merged in order.
#include "core/solve/leverage.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "core/parallel.hpp"
#include "core/solve/rows.hpp"

namespace qrtool {
namespace {

template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
template <class S>
using RowMajor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The columns of A to norm 1, by which the rank is decided; a column of zeros stays.
template <class S>
Eigen::VectorXd scale_columns(Matrix<S>& a) {
  Eigen::VectorXd factors = Eigen::VectorXd::Ones(a.cols());
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    // Squares of very large and very small numbers leave the range of float64.
    const Eigen::Map<const Eigen::VectorXd> numbers(
        reinterpret_cast<const double*>(a.col(j).data()), parts_of<S> * a.rows());
    const double largest = numbers.cwiseAbs().maxCoeff();
    if (!(largest > 0)) continue;
    factors(j) = std::ldexp(1.0, -std::ilogb(largest));
    a.col(j) *= factors(j);
    const double norm = a.col(j).norm();
    factors(j) /= norm;
    a.col(j) /= norm;
  }
  return factors;
}

template <class S>
index_t rank_of(const Eigen::ColPivHouseholderQR<Matrix<S>>& qr, double tolerance) {
  const auto diagonal = qr.matrixQR().diagonal().cwiseAbs();
  index_t rank = 0;
  while (rank < diagonal.size() && diagonal(rank) > tolerance * diagonal(0)) ++rank;
  return rank;
}

/// Clamps a leverage between 0 and 1, and adds what it lacks to the error.
double within_bounds(double h, LeverageReport& report, double& sum) {
  sum += h;
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

/// R of rows below each other, k x n.
template <class S>
Matrix<S> triangle_of(Matrix<S> rows) {
  const Eigen::HouseholderQR<Eigen::Ref<Matrix<S>>> qr(rows);  // in place
  return rows.topRows(std::min(rows.rows(), rows.cols())).template triangularView<Eigen::Upper>();
}

template <class S>
Matrix<S> stacked(const Matrix<S>& above, const Matrix<S>& below) {
  Matrix<S> all(above.rows() + below.rows(), below.cols());
  all << above, below;
  return all;
}

/// The rows of the ridge.
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
void for_blocks(const SolveProblem& problem, int threads,
                const std::function<void(index_t, index_t)>& read, const WeightedRows<S>& rows,
                Work work, Merge merge) {
  const index_t step = leverage_block_rows(problem.n), wave = step * threads;
  for (index_t first = 0; first < problem.m; first += wave) {
    const index_t count = std::min(wave, problem.m - first), blocks = (count + step - 1) / step;
    read(first, count);
    parallel_for(blocks, threads, [&](index_t i, int) {
      const index_t start = first + i * step;
      RowMajor<S> block(std::min(step, problem.m - start), problem.n);
      rows(start, {block.data(), block.rows(), block.cols(), block.cols()});
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

/// Z^H for Z = A P R^-1 of some rows, r columns.
template <class S>
struct Whitener {
  Eigen::VectorXd factors;
  Eigen::PermutationMatrix<Eigen::Dynamic> order;
  Matrix<S> r;  // r x r, upper

  Matrix<S> operator()(const RowMajor<S>& rows) const {
    const Matrix<S> ordered = rows * factors.asDiagonal() * order;
    // Z R = A P D
    Matrix<S> z = ordered.leftCols(r.cols()).adjoint();
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
  return static_cast<std::size_t>((of_block * threads + 6 * n * n) * parts_in(problem.type)) *
         sizeof(double);
}

template <class S>
LeverageReport small_leverages(const SolveProblem& problem, MatrixView<S> rows,
                               std::span<double> leverages) {
  using Strided = Eigen::Map<const RowMajor<S>>;
  LeverageReport report{.rank = 0, .error = 0};
  std::fill(leverages.begin(), leverages.end(), 0.0);
  if (rows.rows == 0 || rows.cols == 0) return report;
  Matrix<S> a = stacked<S>(Strided(rows.data, rows.rows, rows.cols), ridge_rows<S>(problem));
  scale_columns(a);
  const Eigen::ColPivHouseholderQR<Matrix<S>> qr(a);
  report.rank = rank_of<S>(qr, problem.rank.tolerance);
  Matrix<S> q = Matrix<S>::Identity(a.rows(), report.rank);
  q = qr.householderQ() * q;
  double sum = 0;
  for (index_t i = 0; i < rows.rows; ++i)
    leverages[static_cast<std::size_t>(i)] = within_bounds(q.row(i).squaredNorm(), report, sum);
  judge_sum(problem, sum, report);
  return report;
}

template <class S>
LeverageReport large_leverages(const SolveProblem& problem, int threads,
                               const std::function<void(index_t first, index_t count)>& read,
                               const WeightedRows<S>& rows, const KeepLeverages& keep) {
  LeverageReport report{.rank = 0, .error = 0};
  std::vector<Matrix<S>> parts(static_cast<std::size_t>(threads));
  Matrix<S> r = ridge_rows<S>(problem);
  for_blocks(
      problem, threads, read, rows,
      [&](index_t i, const RowMajor<S>& block) { parts[i] = triangle_of<S>(block); },
      [&](index_t i, index_t) { r = triangle_of<S>(stacked(r, parts[i])); });
  Whitener<S> whitener{.factors = scale_columns(r), .order = {}, .r = {}};
  const Eigen::ColPivHouseholderQR<Matrix<S>> qr(r);
  report.rank = rank_of<S>(qr, problem.rank.tolerance);
  whitener.order = qr.colsPermutation();
  whitener.r = qr.matrixQR().topLeftCorner(report.rank, report.rank);
  const Matrix<S> of_ridge = whitener(ridge_rows<S>(problem));
  Matrix<S> gram = of_ridge * of_ridge.adjoint();
  for_blocks(
      problem, threads, read, rows,
      [&](index_t i, const RowMajor<S>& block) {
        const Matrix<S> z = whitener(block);
        parts[i] = z * z.adjoint();
      },
      [&](index_t i, index_t) { gram += parts[i]; });
  const Matrix<S> u = cholesky(gram);
  std::vector<Eigen::VectorXd> found(parts.size());
  double sum = 0;
  for_blocks(
      problem, threads, read, rows,
      [&](index_t i, const RowMajor<S>& block) {
        Matrix<S> z = whitener(block);
        solve_adjoint(u, z);
        found[i] = z.colwise().squaredNorm();
      },
      [&](index_t i, index_t first) {
        for (double& h : found[i]) h = within_bounds(h, report, sum);
        keep(first, std::span(found[i].data(), static_cast<std::size_t>(found[i].size())));
      });
  judge_sum(problem, sum, report);
  return report;
}

#define QRTOOL_FOR(S)                                                                             \
  template LeverageReport small_leverages(const SolveProblem&, MatrixView<S>, std::span<double>); \
  template LeverageReport large_leverages(const SolveProblem&, int,                               \
                                          const std::function<void(index_t, index_t)>&,           \
                                          const WeightedRows<S>&, const KeepLeverages&);
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
