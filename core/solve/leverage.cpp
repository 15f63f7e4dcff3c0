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

using Matrix = Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The columns of A to norm 1, by which the rank is decided; a column of zeros stays.
Eigen::VectorXd scale_columns(Eigen::Ref<Matrix> a) {
  Eigen::VectorXd factors = Eigen::VectorXd::Ones(a.cols());
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    // Squares of very large and very small numbers leave the range of float64.
    const double largest = a.col(j).cwiseAbs().maxCoeff();
    if (!(largest > 0)) continue;
    factors(j) = std::ldexp(1.0, -std::ilogb(largest));
    a.col(j) *= factors(j);
    const double norm = a.col(j).norm();
    factors(j) /= norm;
    a.col(j) /= norm;
  }
  return factors;
}

index_t rank_of(const Eigen::ColPivHouseholderQR<Matrix>& qr, double tolerance) {
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
Matrix triangle_of(Matrix rows) {
  const Eigen::HouseholderQR<Eigen::Ref<Matrix>> qr(rows);  // in place
  return rows.topRows(std::min(rows.rows(), rows.cols())).triangularView<Eigen::Upper>();
}

Matrix stacked(const Matrix& above, const Matrix& below) {
  Matrix all(above.rows() + below.rows(), below.cols());
  all << above, below;
  return all;
}

/// The rows of the ridge.
Matrix ridge_rows(const SolveProblem& problem) {
  const index_t n = problem.ridge > 0 ? problem.n : 0;
  Matrix rows = Matrix::Zero(n, problem.n);
  for (index_t j = 0; j < n; ++j) rows(j, j) = problem.penalty(j);
  return rows;
}

/// Calls work(number in the wave, first row, rows) for the blocks of all waves, and merge(number)
/// in order.
template <class Work, class Merge>
void for_blocks(const SolveProblem& problem, int threads,
                const std::function<void(index_t, index_t)>& read, const WeightedRows& rows,
                Work work, Merge merge) {
  const index_t step = leverage_block_rows(problem.n), wave = step * threads;
  for (index_t first = 0; first < problem.m; first += wave) {
    const index_t count = std::min(wave, problem.m - first), blocks = (count + step - 1) / step;
    read(first, count);
    parallel_for(blocks, threads, [&](index_t i, int) {
      const index_t start = first + i * step;
      RowMajor block(std::min(step, problem.m - start), problem.n);
      rows(start, {block.data(), block.rows(), block.cols(), block.cols()});
      work(i, block);
    });
    for (index_t i = 0; i < blocks; ++i) merge(i, first + i * step);
  }
}

/// X := R^-T X
void solve_transposed(const Matrix& r, Matrix& x) {
  r.triangularView<Eigen::Upper>().transpose().solveInPlace(x);
}

/// The upper triangular U with S = U^T U.
Matrix cholesky(const Matrix& s) {
  Matrix u = s;
  for (Eigen::Index j = 0; j < s.cols(); ++j) {
    double* const column = u.col(j).data();
    for (Eigen::Index i = 0; i < j; ++i)
      column[i] = (column[i] - dot(u.col(i).data(), column, i)) / u(i, i);
    column[j] = std::sqrt(column[j] - dot(column, column, j));
  }
  return u;
}

/// A P R^-1 of some rows, r columns.
struct Whitener {
  Eigen::VectorXd factors;
  Eigen::PermutationMatrix<Eigen::Dynamic> order;
  Matrix r;  // r x r, upper

  Matrix operator()(const RowMajor& rows) const {
    const Matrix ordered = rows * factors.asDiagonal() * order;
    // Z R = A P D
    Matrix z = ordered.leftCols(r.cols()).transpose();
    solve_transposed(r, z);
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
  return static_cast<std::size_t>(of_block * threads + 6 * n * n) * sizeof(double);
}

LeverageReport small_leverages(const SolveProblem& problem, MatrixView<double> rows,
                               std::span<double> leverages) {
  using Strided = Eigen::Map<const RowMajor>;
  LeverageReport report{.rank = 0, .error = 0};
  std::fill(leverages.begin(), leverages.end(), 0.0);
  if (rows.rows == 0 || rows.cols == 0) return report;
  Matrix a = stacked(Strided(rows.data, rows.rows, rows.cols), ridge_rows(problem));
  scale_columns(a);
  const Eigen::ColPivHouseholderQR<Matrix> qr(a);
  report.rank = rank_of(qr, problem.rank.tolerance);
  Matrix q = Matrix::Identity(a.rows(), report.rank);
  q = qr.householderQ() * q;
  double sum = 0;
  for (index_t i = 0; i < rows.rows; ++i)
    leverages[static_cast<std::size_t>(i)] = within_bounds(q.row(i).squaredNorm(), report, sum);
  judge_sum(problem, sum, report);
  return report;
}

LeverageReport large_leverages(const SolveProblem& problem, int threads,
                               const std::function<void(index_t first, index_t count)>& read,
                               const WeightedRows& rows, const KeepLeverages& keep) {
  LeverageReport report{.rank = 0, .error = 0};
  std::vector<Matrix> parts(static_cast<std::size_t>(threads));
  Matrix r = ridge_rows(problem);
  for_blocks(
      problem, threads, read, rows,
      [&](index_t i, const RowMajor& block) { parts[i] = triangle_of(block); },
      [&](index_t i, index_t) { r = triangle_of(stacked(r, parts[i])); });
  Whitener whitener{.factors = scale_columns(r), .order = {}, .r = {}};
  const Eigen::ColPivHouseholderQR<Matrix> qr(r);
  report.rank = rank_of(qr, problem.rank.tolerance);
  whitener.order = qr.colsPermutation();
  whitener.r = qr.matrixQR().topLeftCorner(report.rank, report.rank);
  // Z is transposed: r x rows.
  const Matrix of_ridge = whitener(ridge_rows(problem));
  Matrix gram = of_ridge * of_ridge.transpose();
  for_blocks(
      problem, threads, read, rows,
      [&](index_t i, const RowMajor& block) {
        const Matrix z = whitener(block);
        parts[i] = z * z.transpose();
      },
      [&](index_t i, index_t) { gram += parts[i]; });
  const Matrix u = cholesky(gram);
  double sum = 0;
  for_blocks(
      problem, threads, read, rows,
      [&](index_t i, const RowMajor& block) {
        Matrix z = whitener(block);
        solve_transposed(u, z);
        parts[i] = z.colwise().squaredNorm();
      },
      [&](index_t i, index_t first) {
        for (double& h : parts[i].reshaped()) h = within_bounds(h, report, sum);
        keep(first, std::span(parts[i].data(), static_cast<std::size_t>(parts[i].size())));
      });
  judge_sum(problem, sum, report);
  return report;
}

}  // namespace qrtool
