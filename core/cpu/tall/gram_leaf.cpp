// SPDX-License-Identifier: Apache-2.0
// gram_leaf.cpp: forms A'A strip by strip and its Cholesky factor, and checks that it is accurate.
#include "core/cpu/tall/gram_leaf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/cpu/tall/gram_kernel.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {
namespace {

/// The largest accepted ||D R^-1||^2, where D holds the columns' norms. The error of R is then at
/// most about 2^20 2^-53 of its columns' norms. Storing R in float32 has a much larger error,
/// 2^-24.
constexpr double most_squared_condition = 0x1p40;

/// The largest accepted ||D R^-1||^2 / n for sums in float32; orthogonal columns have 1. The error
/// of such sums is about 2^-24, and the error of R a few times larger, as with reflectors in
/// float32.
constexpr double most_narrow_condition = 4;
/// The smallest accepted square of a column's norm for sums in float32, above which underflow of
/// products does not matter.
constexpr double least_narrow_square = 0x1p-60;

index_t padded(index_t n) { return (n + gram::unit - 1) / gram::unit * gram::unit; }

/// The rows that are converted to float64 at a time; they stay in the first-level cache. The
/// rounding of the sums depends on this number.
index_t strip_rows(index_t n) {
  constexpr index_t elements = 3072;
  return std::clamp<index_t>(elements / padded(n) / 8 * 8, 32, 128);
}

/// Returns how many rows a strip has whose numbers stay in float32.
index_t narrow_strip_rows(index_t n) {
  constexpr index_t elements = 8192;
  return std::max<index_t>(elements / n / 32 * 32, 32);
}

/// x -= factor y
void subtract(double* x, double factor, const double* y, index_t count) {
  for (index_t j = 0; j < count; ++j) x[j] -= factor * y[j];
}

void clear(const Batch<double>& batch) {
  const BatchView<double> view = batch.view();
  std::fill_n(view.data, view.rows * view.cols, 0.0);
}

}  // namespace

std::span<const gram::Kernels* const> gram::kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(gram, gram)};
  return supported(all);
}

GramLeaf::GramLeaf(index_t n)
    : n_(n),
      padded_(padded(n)),
      strip_(1, strip_rows(n), padded_),
      sums_(1, padded_, padded_),
      rest_(1, padded_, padded_),
      norms_(1, 1, padded_) {
  clear(strip_);
}

std::size_t GramLeaf::workspace_bytes(index_t n) {
  return sizeof(double) * static_cast<std::size_t>(padded(n) * (strip_rows(n) + 2 * padded(n) + 1));
}

/// Sums A'A and returns the largest |a_ij|.
double GramLeaf::add_rows(MatrixView<const float> a) {
  clear(sums_);
  clear(rest_);
  const gram::Kernels& kernels = *gram::kernels().front();
  double* const strip = strip_.view().data;
  const index_t at_once = strip_rows(n_);
  const bool is_flat = a.ld == n_ && padded_ == n_;
  std::uint32_t largest = 0;
  for (index_t first = 0; first < a.rows; first += at_once) {
    const index_t rows = std::min(at_once, a.rows - first);
    if (is_flat) {
      largest = kernels.widen(&a(first, 0), rows * n_, strip, largest);
    } else {
      for (index_t i = 0; i < rows; ++i)
        largest = kernels.widen(&a(first + i, 0), n_, strip + i * padded_, largest);
    }
    kernels.add_gram(strip, rows, padded_, 0, {sums_.view().data, rest_.view().data});
  }
  return std::bit_cast<float>(largest);
}

/// Sums A'A of a leaf in float32, for values of n and ld that allow it.
double GramLeaf::add_narrow_rows(MatrixView<const float> a) {
  clear(sums_);
  const gram::Kernels& kernels = *gram::kernels().front();
  const index_t at_once = narrow_strip_rows(n_);
  std::uint32_t largest = 0;
  for (index_t first = 0; first < a.rows; first += at_once) {
    const index_t rows = std::min(at_once, a.rows - first);
    largest = kernels.add_narrow_gram(&a(first, 0), rows, n_, sums_.view().data, largest);
  }
  return std::bit_cast<float>(largest);
}

/// Forms R from sums in float32. Returns false if they may be too inaccurate.
bool GramLeaf::factor_narrow(MatrixView<const float> a, double& largest) {
  if (n_ % gram::narrow_unit != 0 || a.ld != n_) return false;
  largest = add_narrow_rows(a);
  for (index_t k = 0; k < n_; ++k) {
    if (!(row(k)[k] >= least_narrow_square)) return false;
  }
  return factor_sums() && squared_condition() <= most_narrow_condition * static_cast<double>(n_);
}

bool GramLeaf::factor_wide(MatrixView<const float> a, double& largest) {
  largest = add_rows(a);
  return factor_sums() && squared_condition() <= most_squared_condition;
}

/// Overwrites A'A with R. Returns false if a pivot is not positive or not larger than its rounding
/// error.
bool GramLeaf::factor_sums() {
  for (index_t k = 0; k < n_; ++k) norms_.view().data[k] = row(k)[k];
  for (index_t k = 0; k < n_; ++k) {
    double* const pivot = row(k);
    if (!(pivot[k] * most_squared_condition > norms_.view().data[k] && pivot[k] < HUGE_VAL))
      return false;
    const double inverse = 1 / std::sqrt(pivot[k]);
    for (index_t j = k; j < n_; ++j) pivot[j] *= inverse;
    for (index_t i = k + 1; i < n_; ++i) subtract(row(i) + i, pivot[i], pivot + i, n_ - i);
  }
  return true;
}

/// Computes ||D R^-1||^2, from the last row of X = R^-1 to the first:
/// R_ii X_i = e_i - sum over l > i of R_il X_l.
double GramLeaf::squared_condition() {
  double sum = 0;
  for (index_t i = n_; i-- > 0;) {
    double* const x = rest_.view().data + i * padded_;
    const double* const r = row(i);
    std::fill_n(x, n_, 0.0);
    x[i] = 1;
    for (index_t l = i + 1; l < n_; ++l)
      subtract(x + l, r[l], rest_.view().data + l * padded_ + l, n_ - l);
    double squares = 0;
    for (index_t j = i; j < n_; ++j) {
      x[j] /= r[i];
      squares += x[j] * x[j];
    }
    sum += squares * norms_.view().data[i];
  }
  return sum;
}

bool GramLeaf::factor(MatrixView<const float> a, MatrixView<float> r, LeafOutcome& outcome) {
  if (a.rows < 2 * n_) return false;
  double& largest = outcome.magnitude.largest;
  if (!factor_narrow(a, largest) && !factor_wide(a, largest)) return false;
  for (index_t i = 0; i < n_; ++i) {
    for (index_t j = 0; j < n_; ++j) {
      const double x = i <= j ? row(i)[j] : 0;
      outcome.r_fits = outcome.r_fits && std::abs(x) <= std::numeric_limits<float>::max();
      r(i, j) = static_cast<float>(x);
    }
  }
  return true;
}

}  // namespace qrtool
