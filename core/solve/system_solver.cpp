// SPDX-License-Identifier: Apache-2.0
// system_solver.cpp: from z to a checked x, one right side after another.
#include "core/solve/system_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qrtool {
namespace {

/// The most dependent columns for which the dependencies are corrected: each takes two passes over
/// A.
constexpr index_t most_corrected_dependencies = 32;

/// Less than the exponent of any number.
constexpr int no_exponent = std::numeric_limits<int>::min() / 4;

/// Returns the larger of two errors; NaN is the largest.
double worse(double one, double other) {
  return std::isnan(one) || std::isnan(other) ? std::numeric_limits<double>::infinity()
                                              : std::max(one, other);
}

}  // namespace

template <class T>
bool SystemSolver<T>::Candidate::is_better_than(const Candidate& other) const {
  if (fits != other.fits) return fits;
  return worse(error, least_norm_error) < worse(other.error, other.least_norm_error);
}

template <class T>
template <class C>
void SystemSolver<T>::take_factor(MatrixView<const C> r, std::span<const int> scales) {
  if (r_.view().rows != r.rows || r_.view().cols != r.cols) r_ = Batch<S>(1, r.rows, r.cols);
  const MatrixView<S> copy = r_.view()[0];
  for (index_t i = 0; i < r.rows; ++i)
    for (index_t j = 0; j < r.cols; ++j) copy(i, j) = j < i ? S(0) : static_cast<S>(r(i, j));
  scales_.assign(scales.begin(), scales.end());
  factor_.set(copy, rules_.rank, scales_);
  has_dependencies_ = false;
  row_norms_.clear();
  if (rules_.wants_se && factor_.has_full_column_rank()) row_norms_ = factor_.inverse_row_norms();
}

template <class T>
MatrixFindings SystemSolver<T>::findings() const {
  return {.rank = static_cast<std::int32_t>(factor_.rank()),
          .condition = factor_.condition(),
          .scaled_condition = factor_.scaled_condition()};
}

/// Makes a candidate of x. x_i 2^shift_i is rounded to T, because that number is stored, and c.x_i
/// is the rounded number.
template <class T>
typename SystemSolver<T>::Candidate SystemSolver<T>::candidate(const std::vector<S>& x,
                                                               int scale_b) const {
  constexpr int smallest = std::numeric_limits<Real<T>>::min_exponent -
                           std::numeric_limits<Real<T>>::digits;  // denormal
  constexpr int smallest_double =
      std::numeric_limits<double>::min_exponent - std::numeric_limits<double>::digits;
  Candidate c;
  c.x.resize(x.size());
  // Entries that are rounded to denormal numbers, of T or beside scaled columns, may change D x by
  // this much, and D^-1 x by 2^lost relative to its largest entry, which is 2^largest at least.
  std::vector<double> rounding;
  int lost = no_exponent, largest = no_exponent;
  const auto over = [&](std::size_t i) {
    return 2 * (shift_of(static_cast<index_t>(i), scale_b) - scale_b) - factor_.exponents()[i];
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int shift = shift_of(static_cast<index_t>(i), scale_b);
    const T stored = static_cast<T>(scaled_by(x[i], shift));
    c.fits = c.fits && is_finite(stored);
    c.x[i] = scaled_by(static_cast<S>(stored), -shift);
    const bool is_exact = std::abs(x[i]) >= std::numeric_limits<double>::min();
    if (is_exact && std::abs(stored) >= std::numeric_limits<Real<T>>::min()) continue;
    const int change = std::max(smallest - 1 - shift, smallest_double - 1);
    rounding.push_back(std::ldexp(1.0, change + factor_.exponents()[i]));
    lost = std::max(lost, change + over(i));
  }
  for (std::size_t i = 0; i < x.size() && lost > no_exponent; ++i)
    if (c.x[i] != S(0)) largest = std::max(largest, std::ilogb(std::abs(c.x[i])) + over(i));
  c.norms.a = factor_.norm();
  c.norms.x = norm_of(factor_.times_sizes(c.x).data(), std::ssize(c.x));
  c.bar = solution_bar(rules_.type, rules_.m, rules_.n);
  if (c.norms.a > 0) c.bar += factor_.dropped_norm() / c.norms.a;
  if (c.norms.x > 0)
    c.bar += std::sqrt(parts_of<T>) * norm_of(rounding.data(), std::ssize(rounding)) / c.norms.x;
  // Until it is judged, this is what the error of the norm owes to such rounding.
  if (factor_.has_least_norm() && lost > no_exponent && largest > no_exponent)
    c.least_norm_error = std::sqrt(static_cast<double>(parts_of<T> * std::ssize(x))) *
                         std::ldexp(1.0, std::min(lost - largest, 0));
  return c;
}

template <class T>
void SystemSolver<T>::judge(const ResidualSums<S>& sums, index_t column, Candidate& c) const {
  const auto p = std::ssize(sums.r_squares);
  c.g.resize(static_cast<std::size_t>(rules_.n));
  for (index_t j = 0; j < rules_.n; ++j) c.g[j] = sums.gradient[j * p + column];
  c.norms.r = std::sqrt(sums.r_squares[column]);
  c.norms.b = std::sqrt(sums.b_squares[column]);
  const std::vector<S> g = factor_.over_sizes(c.g);
  c.norms.g = norm_of(g.data(), rules_.n);
  c.data_residual = std::sqrt(sums.data_squares[column]);
  // A bound that is near the bar says little: the estimate is reported there.
  const double clear = clear_of_bar * c.bar;
  c.error = backward_error_bound(c.norms, std::numeric_limits<double>::infinity());
  if (!(c.error <= clear))
    c.error = backward_error_bound(c.norms, factor_.adjoint_solution_norm(c.g));
  if (!(c.error <= clear) && c.fits)
    c.error = std::fmin(c.error, karlson_walden<S>(c.norms, factor_.r(), g));
  if (!c.fits) {
    c.error = std::numeric_limits<double>::infinity();
    c.data_residual = not_measured;
  }
  if (factor_.has_least_norm()) {
    const double error = factor_.least_norm_error(c.x.data(), clear);
    c.least_norm_error = error <= c.least_norm_error ? 0 : error;
  }
}

template <class T>
void SystemSolver<T>::measure(Rows& rows, index_t j, Candidate& c) const {
  ResidualSums<S> sums(rules_.n, 1);
  if (c.fits) rows.add_residual(j, {c.x.data(), rules_.n, 1, 1}, sums);
  judge(sums, 0, c);
}

/// Takes one step of iterative refinement. The result is kept if the gradient, as R sees it, has
/// become smaller and the check still passes.
template <class T>
void SystemSolver<T>::refine(Rows& rows, index_t j, int scale_b, Candidate& best) const {
  std::vector<S> d(best.x.size(), S(0));
  double squares = 0;
  rows.add_precise_residual(j, best.x.data(), d, squares);
  const double before = factor_.adjoint_solution_norm(d);
  factor_.correct(d);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] += best.x[i];
  Candidate next = candidate(d, scale_b);
  if (!next.fits) return;
  std::vector<S> rest(best.x.size(), S(0));
  rows.add_precise_residual(j, next.x.data(), rest, squares);
  if (!(factor_.adjoint_solution_norm(rest) < before)) return;
  measure(rows, j, next);
  if (next.passes() || next.is_better_than(best)) best = next;
}

template <class T>
void SystemSolver<T>::correct(Rows& rows, index_t j, int scale_b, Candidate& best) const {
  std::vector<S> d = best.g;
  factor_.correct(d);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] += best.x[i];
  Candidate next = candidate(d, scale_b);
  measure(rows, j, next);
  if (next.is_better_than(best)) best = next;
  if (!best.passes() && factor_.has_least_norm()) correct_least(rows, j, scale_b, best);
}

/// Corrects the fit of a solution of least norm by corrections that have the least norm, too.
template <class T>
void SystemSolver<T>::correct_least(Rows& rows, index_t j, int scale_b, Candidate& best) const {
  constexpr int most_steps = 3;
  constexpr auto least = RankedFactor<S>::Choice::least;
  std::vector<S> x = best.x;
  factor_.choose_among_equals(x, least);
  for (int step = 0; step < most_steps && !best.passes(); ++step) {
    Candidate next = candidate(x, scale_b);
    if (!next.fits) return;
    measure(rows, j, next);
    std::vector<S> d = next.g;
    factor_.correct(d, least);
    x = next.x;
    for (std::size_t i = 0; i < d.size(); ++i) x[i] += d[i];
    if (next.is_better_than(best)) best = std::move(next);
  }
}

/// Returns whether the second try made the solution.
template <class T>
bool SystemSolver<T>::try_again(Rows& rows, index_t j, int scale_b, Candidate& best) const {
  const index_t k = factor_.r().rows, n = rules_.n;
  const Batch<S> r(1, k, n), z(1, k, 1);
  if (!rows.factor_again(j, r.view()[0], z.view().data)) return false;
  SystemSolver<S> again(rules_);
  again.take_factor(MatrixView<const S>(r.view()[0]), scales_);
  std::vector<S> x(static_cast<std::size_t>(n));
  again.factor().solve(z.view()[0], {x.data(), n, 1, 1});
  Candidate next = candidate(x, scale_b);
  measure(rows, j, next);
  // The least norm belongs to the rank that these reflectors find.
  if (again.factor().has_least_norm())
    next.least_norm_error = again.factor().least_norm_error(next.x.data());
  if (next.norms.a > 0)
    next.bar = std::max(next.bar, solution_bar(rules_.type, rules_.m, n) +
                                      again.factor().dropped_norm() / next.norms.a);
  if (!next.is_better_than(best)) return false;
  best = next;
  return true;
}

template <class T>
void SystemSolver<T>::store(const Candidate& c, index_t column, int scale_b,
                            const Places& places) const {
  for (index_t i = 0; i < rules_.n; ++i)
    places.x(i, column) = static_cast<T>(scaled_by(c.x[i], shift_of(i, scale_b)));
  SolutionReport& report = places.reports[column];
  report.residual_norm = std::ldexp(c.data_residual, scale_b);
  report.backward_error = c.error;
  report.least_norm_error = factor_.has_least_norm() ? c.least_norm_error : not_measured;
  report.bar = c.bar;
  report.status = !c.fits ? Status::r_overflows : c.passes() ? Status::ok : Status::above_bar;
  const index_t freedom = places.rows_used[column] - factor_.rank();
  report.freedom = static_cast<double>(freedom);
  if (places.se.data == nullptr) return;
  const double sigma =
      freedom > 0 ? c.norms.r / std::sqrt(static_cast<double>(freedom)) : not_measured;
  for (index_t i = 0; i < rules_.n; ++i)
    places.se(i, column) = static_cast<Real<T>>(
        row_norms_.empty() ? not_measured
                           : std::ldexp(sigma * row_norms_[i], shift_of(i, scale_b)));
}

template <class T>
void SystemSolver<T>::correct_dependencies(Rows& rows) {
  if (has_dependencies_) return;
  has_dependencies_ = true;
  if (!has_precise_sums(rules_) || !factor_.has_least_norm() ||
      rules_.n - factor_.rank() > most_corrected_dependencies ||
      !factor_.has_hard_basis(least_refined_condition))
    return;
  factor_.correct_dependencies([&](const std::vector<S>& x) {
    std::vector<S> g(x.size(), S(0));
    double squares = 0;
    rows.add_precise_residual(-1, x.data(), g, squares);
    return g;
  });
}

/// X for Z = Q^H B. Basic solutions are corrected before one of least norm is chosen.
template <class T>
void SystemSolver<T>::find_solutions(Rows& rows, index_t first, MatrixView<const S> z,
                                     MatrixView<S> x) {
  if (!is_refined(rules_) || !factor_.has_hard_basis(least_refined_condition)) {
    factor_.solve(z, x);
    return;
  }
  for (index_t j = 0; j < x.cols; ++j) {
    std::vector<S> solution = factor_.basic_solution({z.data + j, z.rows, 1, z.ld});
    std::vector<S> d(solution.size(), S(0));
    double squares = 0;
    rows.add_precise_residual(first + j, solution.data(), d, squares);
    factor_.correct_basic(d);
    for (std::size_t i = 0; i < d.size(); ++i) solution[i] += d[i];
    factor_.choose_among_equals(solution);
    for (index_t i = 0; i < x.rows; ++i) x(i, j) = solution[i];
  }
}

template <class T>
void SystemSolver<T>::solve(Rows& rows, index_t first, MatrixView<const S> z,
                            std::span<const int> scales, const Places& places) {
  correct_dependencies(rows);
  if (rules_.only_checks) {
    check(rows, first, scales, places);
    return;
  }
  const index_t n = rules_.n, p = z.cols;
  const Batch<S> solutions(1, n, p);
  const MatrixView<S> x = solutions.view()[0];
  find_solutions(rows, first, z, x);
  std::vector<Candidate> candidates;
  for (index_t j = 0; j < p; ++j) {
    std::vector<S> column(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) column[i] = x(i, j);
    candidates.push_back(candidate(column, scales[j]));
    for (index_t i = 0; i < n; ++i)
      x(i, j) = candidates.back().fits ? candidates.back().x[i] : S(0);
  }
  ResidualSums<S> sums(n, p);
  rows.add_residual(first, x, sums);
  const bool refines = is_refined(rules_) && factor_.has_full_column_rank() &&
                       factor_.scaled_condition() > least_refined_condition;
  for (index_t j = 0; j < p; ++j) {
    Candidate& best = candidates[j];
    judge(sums, j, best);
    if (refines && best.fits) refine(rows, first + j, scales[j], best);
    if (!best.passes() && best.fits) correct(rows, first + j, scales[j], best);
    places.reports[j] = {};
    if (!best.passes() && try_again(rows, first + j, scales[j], best)) places.reports[j].tries = 2;
    store(best, j, scales[j], places);
  }
}

template <class T>
void SystemSolver<T>::check(Rows& rows, index_t first, std::span<const int> scales,
                            const Places& places) {
  const index_t n = rules_.n, p = places.x.cols;
  for (index_t j = 0; j < p; ++j) {
    std::vector<S> x(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i)
      x[i] = scaled_by(static_cast<S>(places.x(i, j)), -shift_of(i, scales[j]));
    Candidate c = candidate(x, scales[j]);
    measure(rows, first + j, c);
    SolutionReport& report = places.reports[j] = {};
    report.residual_norm = std::ldexp(c.data_residual, scales[j]);
    report.backward_error = c.error;
    report.least_norm_error = factor_.has_least_norm() ? c.least_norm_error : not_measured;
    report.bar = c.bar;
    report.status = c.passes() ? Status::ok : Status::above_bar;
  }
}

template class SystemSolver<float>;
template class SystemSolver<double>;
template class SystemSolver<std::complex<float>>;
template class SystemSolver<std::complex<double>>;
template void SystemSolver<float>::take_factor(MatrixView<const float>, std::span<const int>);
template void SystemSolver<float>::take_factor(MatrixView<const double>, std::span<const int>);
template void SystemSolver<double>::take_factor(MatrixView<const double>, std::span<const int>);
template void SystemSolver<std::complex<float>>::take_factor(MatrixView<const std::complex<float>>,
                                                             std::span<const int>);
template void SystemSolver<std::complex<float>>::take_factor(MatrixView<const std::complex<double>>,
                                                             std::span<const int>);
template void SystemSolver<std::complex<double>>::take_factor(
    MatrixView<const std::complex<double>>, std::span<const int>);

}  // namespace qrtool
