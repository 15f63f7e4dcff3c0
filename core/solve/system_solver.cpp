// SPDX-License-Identifier: Apache-2.0
// system_solver.cpp: from z to a checked x, one right side after another.
#include "core/solve/system_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qrtool {
namespace {

int smallest_exponent(ElementType type) {
  return real_of(type) == ElementType::float32 ? -149 : -1074;
}

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
void SystemSolver<T>::take_factor(MatrixView<const C> r) {
  if (r_.view().rows != r.rows || r_.view().cols != r.cols) r_ = Batch<S>(1, r.rows, r.cols);
  const MatrixView<S> copy = r_.view()[0];
  for (index_t i = 0; i < r.rows; ++i)
    for (index_t j = 0; j < r.cols; ++j) copy(i, j) = j < i ? S(0) : static_cast<S>(r(i, j));
  factor_.set(copy, rules_.rank);
  row_norms_.clear();
  if (rules_.wants_se && factor_.has_full_column_rank()) row_norms_ = factor_.inverse_row_norms();
}

template <class T>
MatrixFindings SystemSolver<T>::findings() const {
  return {.rank = static_cast<std::int32_t>(factor_.rank()),
          .condition = factor_.condition(),
          .scaled_condition = factor_.scaled_condition()};
}

/// Makes a candidate of x. x 2^shift is rounded to T, because that number is stored, and c.x is the
/// rounded number.
template <class T>
typename SystemSolver<T>::Candidate SystemSolver<T>::candidate(const std::vector<S>& x,
                                                               int shift) const {
  Candidate c;
  c.x.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T stored = static_cast<T>(scaled_by(x[i], shift));
    c.fits = c.fits && is_finite(stored);
    c.x[i] = scaled_by(static_cast<S>(stored), -shift);
  }
  c.norms.a = factor_.norm();
  c.norms.x = norm_of(c.x.data(), std::ssize(c.x));
  // Entries that are rounded to denormal numbers of T may change x by this much.
  const double rounding = std::sqrt(static_cast<double>(parts_of<T> * std::ssize(x))) *
                          std::ldexp(1.0, smallest_exponent(rules_.type) - 1 - shift);
  c.bar = solution_bar(rules_.type, rules_.m, rules_.n);
  if (c.norms.a > 0) c.bar += factor_.dropped_norm() / c.norms.a;
  if (c.norms.x > 0) c.bar += rounding / c.norms.x;
  return c;
}

template <class T>
void SystemSolver<T>::judge(const ResidualSums<S>& sums, index_t column, Candidate& c) const {
  const auto p = std::ssize(sums.r_squares);
  c.g.resize(static_cast<std::size_t>(rules_.n));
  for (index_t j = 0; j < rules_.n; ++j) c.g[j] = sums.gradient[j * p + column];
  c.norms.r = std::sqrt(sums.r_squares[column]);
  c.norms.b = std::sqrt(sums.b_squares[column]);
  c.norms.g = norm_of(c.g.data(), rules_.n);
  c.data_residual = std::sqrt(sums.data_squares[column]);
  // A bound that is near the bar says little: the estimate is reported there.
  const double clear = clear_of_bar * c.bar;
  c.error = backward_error_bound(c.norms, std::numeric_limits<double>::infinity());
  if (!(c.error <= clear))
    c.error = backward_error_bound(c.norms, factor_.adjoint_solution_norm(c.g));
  if (!(c.error <= clear) && c.fits)
    c.error = std::fmin(c.error, karlson_walden<S>(c.norms, factor_.r(), c.g));
  if (!c.fits) {
    c.error = std::numeric_limits<double>::infinity();
    c.data_residual = not_measured;
  }
  c.least_norm_error = factor_.has_least_norm() ? factor_.least_norm_error(c.x.data()) : 0;
}

template <class T>
void SystemSolver<T>::measure(Rows& rows, index_t j, Candidate& c) const {
  ResidualSums<S> sums(rules_.n, 1);
  if (c.fits) rows.add_residual(j, {c.x.data(), rules_.n, 1, 1}, sums);
  judge(sums, 0, c);
}

/// Takes one step of iterative refinement. It is kept where the gradient, as R sees it, has become
/// smaller and the check still passes.
template <class T>
void SystemSolver<T>::refine(Rows& rows, index_t j, int shift, Candidate& best) const {
  std::vector<S> d(best.x.size(), S(0));
  double squares = 0;
  rows.add_precise_residual(j, best.x.data(), d, squares);
  const double before = factor_.adjoint_solution_norm(d);
  factor_.correct(d);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] += best.x[i];
  Candidate next = candidate(d, shift);
  if (!next.fits) return;
  std::vector<S> rest(best.x.size(), S(0));
  rows.add_precise_residual(j, next.x.data(), rest, squares);
  if (!(factor_.adjoint_solution_norm(rest) < before)) return;
  measure(rows, j, next);
  if (next.passes() || next.is_better_than(best)) best = next;
}

template <class T>
void SystemSolver<T>::correct(Rows& rows, index_t j, int shift, Candidate& best) const {
  std::vector<S> d = best.g;
  factor_.correct(d);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] += best.x[i];
  Candidate next = candidate(d, shift);
  measure(rows, j, next);
  if (next.is_better_than(best)) best = next;
}

/// Returns whether the second try made the solution.
template <class T>
bool SystemSolver<T>::try_again(Rows& rows, index_t j, int shift, Candidate& best) const {
  const index_t k = factor_.r().rows, n = rules_.n;
  const Batch<S> r(1, k, n), z(1, k, 1);
  if (!rows.factor_again(j, r.view()[0], z.view().data)) return false;
  SystemSolver<S> again(rules_);
  again.take_factor(MatrixView<const S>(r.view()[0]));
  std::vector<S> x(static_cast<std::size_t>(n));
  again.factor().solve(z.view()[0], {x.data(), n, 1, 1});
  Candidate next = candidate(x, shift);
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
void SystemSolver<T>::store(const Candidate& c, index_t column, int shift, int scale_b,
                            const Places& places) const {
  for (index_t i = 0; i < rules_.n; ++i)
    places.x(i, column) = static_cast<T>(scaled_by(c.x[i], shift));
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
        row_norms_.empty() ? not_measured : std::ldexp(sigma * row_norms_[i], shift));
}

template <class T>
void SystemSolver<T>::solve(Rows& rows, index_t first, MatrixView<const S> z, const Scales& scales,
                            const Places& places) {
  if (rules_.only_checks) {
    check(rows, first, scales, places);
    return;
  }
  const index_t n = rules_.n, p = z.cols;
  const Batch<S> solutions(1, n, p);
  const MatrixView<S> x = solutions.view()[0];
  factor_.solve(z, x);
  std::vector<Candidate> candidates;
  for (index_t j = 0; j < p; ++j) {
    std::vector<S> column(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) column[i] = x(i, j);
    candidates.push_back(candidate(column, scales.b[j] - scales.a));
    for (index_t i = 0; i < n; ++i)
      x(i, j) = candidates.back().fits ? candidates.back().x[i] : S(0);
  }
  ResidualSums<S> sums(n, p);
  rows.add_residual(first, x, sums);
  const bool refines = is_refined(rules_) && factor_.has_full_column_rank() &&
                       factor_.scaled_condition() > least_refined_condition;
  for (index_t j = 0; j < p; ++j) {
    Candidate& best = candidates[j];
    const int shift = scales.b[j] - scales.a;
    judge(sums, j, best);
    if (refines && best.fits) refine(rows, first + j, shift, best);
    if (!best.passes() && best.fits) correct(rows, first + j, shift, best);
    places.reports[j] = {};
    if (!best.passes() && try_again(rows, first + j, shift, best)) places.reports[j].tries = 2;
    store(best, j, shift, scales.b[j], places);
  }
}

template <class T>
void SystemSolver<T>::check(Rows& rows, index_t first, const Scales& scales, const Places& places) {
  const index_t n = rules_.n, p = places.x.cols;
  for (index_t j = 0; j < p; ++j) {
    const int shift = scales.b[j] - scales.a;
    std::vector<S> x(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) x[i] = scaled_by(static_cast<S>(places.x(i, j)), -shift);
    Candidate c = candidate(x, shift);
    measure(rows, first + j, c);
    SolutionReport& report = places.reports[j] = {};
    report.residual_norm = std::ldexp(c.data_residual, scales.b[j]);
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
template void SystemSolver<float>::take_factor(MatrixView<const float>);
template void SystemSolver<float>::take_factor(MatrixView<const double>);
template void SystemSolver<double>::take_factor(MatrixView<const double>);
template void SystemSolver<std::complex<float>>::take_factor(MatrixView<const std::complex<float>>);
template void SystemSolver<std::complex<float>>::take_factor(
    MatrixView<const std::complex<double>>);
template void SystemSolver<std::complex<double>>::take_factor(
    MatrixView<const std::complex<double>>);

}  // namespace qrtool
