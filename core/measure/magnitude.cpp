// SPDX-License-Identifier: Apache-2.0
// magnitude.cpp: goes through the bits of all entries.
#include "core/measure/magnitude.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/matrix/complex.hpp"
#include "core/measure/scan_kernel.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {

std::span<const scan::Kernels* const> scan::kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(scan, scan)};
  return supported(all);
}

int Magnitude::scale() const {
  int exponent = 0;
  if (finite) std::frexp(largest, &exponent);
  return exponent;
}

void Magnitude::include(const Magnitude& other) {
  largest = std::max(largest, other.largest);
  finite = finite && other.finite;
}

namespace {

template <class T>
Magnitude magnitude_of_real(MatrixView<const T> a) {
  const scan::Kernels& kernels = *scan::kernels().front();
  const bool is_packed = a.ld == a.cols;
  const index_t rows = is_packed ? std::min<index_t>(a.rows, 1) : a.rows;
  const index_t cols = is_packed ? a.rows * a.cols : a.cols;
  std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t> largest = 0;
  for (index_t i = 0; i < rows; ++i) {
    const T* row = a.data + i * a.ld;
    if constexpr (sizeof(T) == 4) {
      largest = kernels.largest_single(row, cols, largest);
    } else {
      largest = kernels.largest_double(row, cols, largest);
    }
  }
  const T value = std::bit_cast<T>(largest);
  return {static_cast<double>(value), std::isfinite(value)};
}

}  // namespace

template <class T>
Magnitude magnitude_of(MatrixView<const T> a) {
  return magnitude_of_real<Real<T>>(interleaved(a));
}

template Magnitude magnitude_of(MatrixView<const float>);
template Magnitude magnitude_of(MatrixView<const double>);
template Magnitude magnitude_of(MatrixView<const std::complex<float>>);
template Magnitude magnitude_of(MatrixView<const std::complex<double>>);

}  // namespace qrtool
