// SPDX-License-Identifier: Apache-2.0
// packing.cpp: copies a system into the form in which it is factored and checked.
#include "core/solve/packing.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/eigen/eigen_qr.hpp"

namespace qrtool {
namespace {

int exponent_of(double largest) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  return exponent;
}

/// Adds |x| to `largest`; NaN and infinity make it infinite.
void include(double x, double& largest) {
  const double size = std::abs(x);
  if (!(size <= largest)) largest = std::isfinite(size) ? size : HUGE_VAL;
}

/// The largest |a_ij| of the rows that count, and the sum of their squares, for each real column.
struct ColumnSizes {
  explicit ColumnSizes(index_t columns)
      : largest(static_cast<std::size_t>(columns)), squares(largest.size()) {}

  /// Adds a row times `factor` to a sum. It has no branches, so that it is vectorised; a number
  /// that is not finite makes the sum infinite or NaN.
  template <class R>
  void add(const R* row, double factor) {
    double *most = largest.data(), *sums = squares.data();
    const auto columns = static_cast<index_t>(largest.size());
#pragma omp simd
    for (index_t j = 0; j < columns; ++j) {
      const double size = std::abs(static_cast<double>(row[j]) * factor);
      most[j] = size > most[j] ? size : most[j];
      sums[j] += size * size;
    }
  }

  std::vector<double> largest, squares;
};

/// Calls use(row, factor) for the rows that count.
template <class R, class Use>
void for_rows(MatrixView<const R> a, const RowFactors& rows, Use use) {
  for (index_t i = 0; i < a.rows; ++i)
    if (rows[i] != 0) use(&a(i, 0), rows[i]);
}

/// Sums the squares of columns whose sums left the range of float64, after dividing each by
/// 2^exponents[j].
template <class R>
std::vector<double> scaled_squares(MatrixView<const R> a, const RowFactors& rows,
                                   const std::vector<int>& exponents) {
  std::vector<double> squares(exponents.size());
  for_rows(a, rows, [&](const R* row, double factor) {
    for (std::size_t j = 0; j < squares.size(); ++j) {
      const double x = std::ldexp(static_cast<double>(row[j]) * factor, -exponents[j]);
      squares[j] += x * x;
    }
  });
  return squares;
}

/// Finds the e_j such that the norm of column j, with the row that the ridge adds to it, is in
/// [2^(e_j - 1), 2^e_j). Returns false if A is not finite.
template <class R>
bool find_column_scales(const SolveProblem& problem, MatrixView<const R> a, const RowFactors& rows,
                        std::vector<int>& scales) {
  ColumnSizes sizes(a.cols);
  for_rows(a, rows, [&](const R* row, double factor) { sizes.add(row, factor); });
  const auto parts = std::ssize(sizes.largest) / std::max<index_t>(problem.n, 1);
  // Squares of numbers between these neither overflow nor vanish.
  constexpr double least = 0x1p-400, most = 0x1p400;
  std::vector<int> exponents(sizes.largest.size());
  bool is_in_range = true;
  for (std::size_t j = 0; j < exponents.size(); ++j) {
    const double largest = sizes.largest[j];
    if (!std::isfinite(sizes.squares[j]) && !(largest > most)) return false;  // NaN
    if (!std::isfinite(largest)) return false;
    is_in_range = is_in_range && (largest == 0 || (largest > least && largest < most));
    exponents[j] = exponent_of(largest);
  }
  if (is_in_range) {
    std::ranges::fill(exponents, 0);
  } else {
    sizes.squares = scaled_squares(a, rows, exponents);
    if (!std::ranges::all_of(sizes.squares, [](double sum) { return std::isfinite(sum); }))
      return false;
  }
  scales.assign(static_cast<std::size_t>(problem.n), 0);
  for (index_t j = 0; j < problem.n; ++j) {
    double norm = problem.penalty(j);
    for (index_t part = parts * j; part < parts * (j + 1); ++part)
      norm = std::hypot(norm, std::ldexp(std::sqrt(sizes.squares[part]), exponents[part]));
    scales[j] = exponent_of(norm);
  }
  return true;
}

}  // namespace

void RowFactors::reset() { std::fill(roots_.begin(), roots_.end(), 1.0); }

template <class R>
void RowFactors::weigh(const R* w, index_t step) {
  for (index_t i = 0; i < std::ssize(roots_); ++i)
    roots_[i] *= std::sqrt(static_cast<double>(w[i * step]));
}

template <class T>
void RowFactors::leave_out(MatrixView<const T> a) {
  for (index_t i = 0; i < a.rows; ++i) {
    const T* row = &a(i, 0);
    if (std::none_of(row, row + a.cols, [](T x) { return is_nan(x); })) continue;
    roots_[i] = 0;
  }
}

template <class T>
void RowFactors::leave_out(const T* b, index_t step) {
  for (index_t i = 0; i < std::ssize(roots_); ++i) {
    if (!is_nan(b[i * step])) continue;
    roots_[i] = 0;
  }
}

index_t RowFactors::used() const {
  return std::count_if(roots_.begin(), roots_.end(), [](double root) { return root != 0; });
}

template <class T>
bool pack_matrix(const SolveProblem& problem, MatrixView<const T> a, const RowFactors& rows,
                 MatrixView<T> to, std::vector<int>& scales) {
  // Row factors and scales are real: of complex matrices they multiply the parts.
  const MatrixView<const Real<T>> parts_of_a = interleaved(a);
  const MatrixView<Real<T>> parts_of_to = interleaved(to);
  const index_t parts = parts_of<T>, cols = parts_of_a.cols;
  const bool is_finite = find_column_scales(problem, parts_of_a, rows, scales);
  if (!is_finite) scales.assign(static_cast<std::size_t>(problem.n), 0);
  // A power of two is applied as two factors, each of which is in range.
  std::vector<double> half(static_cast<std::size_t>(cols)), rest(half.size());
  for (index_t j = 0; j < cols; ++j) {
    const int down = -scales[j / parts];
    half[j] = std::ldexp(1.0, down / 2);
    rest[j] = std::ldexp(1.0, down - down / 2);
  }
  const double *first = half.data(), *second = rest.data();
  for (index_t i = 0; i < to.rows; ++i) {
    Real<T>* row = &parts_of_to(i, 0);
    if (is_finite && i < a.rows && rows[i] != 0) {
      const double factor = rows[i];
      const Real<T>* from = &parts_of_a(i, 0);
#pragma omp simd
      for (index_t j = 0; j < cols; ++j)
        row[j] = static_cast<Real<T>>(static_cast<double>(from[j]) * factor * first[j] * second[j]);
      continue;
    }
    std::fill_n(row, cols, Real<T>(0));
    if (!is_finite || i < a.rows) continue;
    const index_t j = i - a.rows;
    row[parts * j] =
        static_cast<Real<T>>(problem.penalty(j) * first[parts * j] * second[parts * j]);
  }
  return is_finite;
}

template <class T>
PackedScale pack_right_side(const SolveProblem& problem, const T* b, index_t step,
                            const RowFactors& rows, MatrixView<T> to, index_t column) {
  constexpr index_t parts = parts_of<T>;
  const auto* const parts_of_b = reinterpret_cast<const Real<T>*>(b);
  double largest = 0;
  for (index_t i = 0; i < problem.m; ++i)
    for (index_t q = 0; q < parts && rows[i] != 0; ++q)
      include(static_cast<double>(parts_of_b[parts * i * step + q]) * rows[i], largest);
  const bool is_finite = std::isfinite(largest);
  const int scale = is_finite ? exponent_of(largest) : 0;
  const PowerOfTwoFactor scaled(-scale);
  for (index_t i = 0; i < to.rows; ++i) {
    const bool counts = is_finite && i < problem.m && rows[i] != 0;
    auto* const entry = reinterpret_cast<Real<T>*>(&to(i, column));
    for (index_t q = 0; q < parts; ++q)
      entry[q] = counts ? static_cast<Real<T>>(scaled(
                              static_cast<double>(parts_of_b[parts * i * step + q]) * rows[i]))
                        : Real<T>(0);
  }
  return {scale, is_finite};
}

template <class T>
void PackedRows<T>::add_residual(index_t first, MatrixView<const S> x, ResidualSums<S>& sums) {
  qrtool::add_residual<T>(a_, {b_.data + first, b_.rows, x.cols, b_.ld}, x, problem_.m, sums);
}

template <class T>
void PackedRows<T>::add_precise_residual(index_t j, const S* x, std::vector<S>& gradient,
                                         double& r_squares) {
  if constexpr (std::is_same_v<T, S>)
    qrtool::add_precise_residual<S>(a_, j < 0 ? nullptr : b_.data + j, b_.ld, x, gradient,
                                    r_squares);
}

template <class T>
bool PackedRows<T>::factor_again(index_t j, MatrixView<S> r, S* z) {
  const index_t m = a_.rows, n = a_.cols;
  const Problem problem{.count = 1,
                        .m = m,
                        .n = n + 1,
                        .type = element_type<S>,
                        .mode = Mode::r,
                        .sign = Sign::lapack};
  const Batch<S> system(1, m, n + 1), factor(1, problem.k(), n + 1);
  const MatrixView<S> ab = system.view()[0], all = factor.view()[0];
  for (index_t i = 0; i < m; ++i) {
    for (index_t c = 0; c < n; ++c) ab(i, c) = static_cast<S>(a_(i, c));
    ab(i, n) = static_cast<S>(b_(i, j));
  }
  if (!EigenQr<S>(problem).factor(ab, {.q = {}, .r = all, .v = {}, .tau = {}})) return false;
  for (index_t i = 0; i < r.rows; ++i) {
    std::copy_n(&all(i, 0), n, &r(i, 0));
    z[i] = all(i, n);
  }
  return true;
}

#define QRTOOL_FOR(T)                                                                             \
  template void RowFactors::leave_out(MatrixView<const T>);                                       \
  template void RowFactors::leave_out(const T*, index_t);                                         \
  template bool pack_matrix(const SolveProblem&, MatrixView<const T>, const RowFactors&,          \
                            MatrixView<T>, std::vector<int>&);                                    \
  template PackedScale pack_right_side(const SolveProblem&, const T*, index_t, const RowFactors&, \
                                       MatrixView<T>, index_t);                                   \
  template class PackedRows<T>;
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR
template void RowFactors::weigh(const float*, index_t);
template void RowFactors::weigh(const double*, index_t);

}  // namespace qrtool
