// SPDX-License-Identifier: Apache-2.0
// arrays.cpp: checks and copies.
#include "app/capi/arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool::capi {
namespace {

/// A tile of both orders stays in the first cache.
constexpr index_t tile = 32;
/// Fewer entries are copied before other threads are awake.
constexpr index_t least_shared = 1 << 16;

void require_aligned(const void* data, std::size_t alignment, const char* name) {
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0)
    throw UsageError(fmt::format("{}: data is not aligned to {} bytes", name, alignment));
}

void require_extent(index_t count, index_t rows, index_t cols, std::size_t bytes,
                    const char* name) {
  if (count < 0 || rows < 0 || cols < 0)
    throw UsageError(fmt::format("{}: a shape is negative: {} x {} x {}", name, count, rows, cols));
  index_t all = 0;
  const bool is_too_large = __builtin_mul_overflow(std::max<index_t>(count, 1), rows, &all) ||
                            __builtin_mul_overflow(all, std::max<index_t>(cols, 1), &all) ||
                            __builtin_mul_overflow(all, static_cast<index_t>(bytes), &all);
  if (is_too_large)
    throw UsageError(
        fmt::format("{}: {} x {} x {} is larger than any memory", name, count, rows, cols));
}

/// Whether two places of a shape share memory, as far as sorted strides show it: each stride must
/// be larger than the range that the smaller ones reach.
bool overlaps(index_t count, index_t rows, index_t cols, index_t stride, index_t row_stride,
              index_t col_stride) {
  if (count == 0 || rows == 0 || cols == 0) return false;
  // The product is computed in floating point, because nothing bounds the strides.
  struct Step {
    double size, stride;
  };
  const auto step = [](index_t size, index_t by) {
    return Step{static_cast<double>(size), std::abs(static_cast<double>(by))};
  };
  Step steps[] = {step(count, stride), step(rows, row_stride), step(cols, col_stride)};
  std::sort(std::begin(steps), std::end(steps),
            [](const Step& one, const Step& other) { return one.stride < other.stride; });
  double reach = 0;
  for (const auto& [size, by] : steps) {
    if (size <= 1) continue;
    if (by <= reach) return true;
    reach += (size - 1) * by;
  }
  return false;
}

template <class U, class T>
U as(const T& x) {
  if constexpr (is_complex_number<T>)
    return {static_cast<Real<U>>(x.real()), static_cast<Real<U>>(x.imag())};
  else
    return static_cast<U>(x);
}

template <class T, class U>
void copy_tile(const Strided<const T>& from, const Strided<U>& to, index_t i0, index_t j0) {
  const index_t i1 = std::min(i0 + tile, from.rows), j1 = std::min(j0 + tile, from.cols);
  for (index_t i = i0; i < i1; ++i)
    for (index_t j = j0; j < j1; ++j)
      to.data[i * to.row_stride + j * to.col_stride] =
          as<U>(from.data[i * from.row_stride + j * from.col_stride]);
}

}  // namespace

ElementType type_of(const qrtool_matrices& given, const char* name) {
  switch (given.type) {
    case QRTOOL_FLOAT64:
      return ElementType::float64;
    case QRTOOL_FLOAT32:
      return ElementType::float32;
    case QRTOOL_COMPLEX128:
      return ElementType::complex128;
    case QRTOOL_COMPLEX64:
      return ElementType::complex64;
    default:
      throw UsageError(fmt::format("{}: there is no type {}", name, given.type));
  }
}

void require_valid_shape(const qrtool_matrices& given, const char* name) {
  const ElementType type = type_of(given, name);
  if (given.reserved != 0) throw UsageError(fmt::format("{}: reserved is not 0", name));
  require_extent(given.count, given.rows, given.columns, size_of(type), name);
}

void require_valid(const qrtool_matrices& given, const char* name) {
  require_valid_shape(given, name);
  const ElementType type = type_of(given, name);
  if (given.count == 0 || given.rows == 0 || given.columns == 0) return;
  if (given.data == nullptr) throw UsageError(fmt::format("{}: data is NULL", name));
  require_aligned(given.data, size_of(real_of(type)), name);
}

template <class T>
Strided<T> place_for(const qrtool_place& place, const char* name, index_t count, index_t rows,
                     index_t cols) {
  require_extent(count, rows, cols, sizeof(T), name);
  if (place.data == nullptr) return {.count = count, .rows = rows, .cols = cols};
  require_aligned(place.data, sizeof(Real<T>), name);
  const bool is_packed = place.row_stride == 0 && place.column_stride == 0;
  const Strided<T> result{static_cast<T*>(place.data),
                          count,
                          rows,
                          cols,
                          is_packed ? cols : place.row_stride,
                          is_packed ? 1 : place.column_stride,
                          is_packed ? rows * cols : place.matrix_stride};
  if (overlaps(count, rows, cols, result.stride, result.row_stride, result.col_stride))
    throw UsageError(fmt::format("{}: entries share memory: strides {}, {}, {} of {} x {} x {}",
                                 name, result.stride, result.row_stride, result.col_stride, count,
                                 rows, cols));
  return result;
}

template <class T, class U>
void copy(const Strided<const T>& from, const Strided<U>& to, int threads) {
  const index_t blocks = (from.rows + tile - 1) / tile;
  if (from.count * from.rows * from.cols < least_shared) threads = 1;
  parallel_for(from.count * blocks, threads, [&](index_t number, int) {
    const index_t b = number / blocks, i = number % blocks * tile;
    for (index_t j = 0; j < from.cols; j += tile)
      copy_tile<T, U>(from.slice(b, 1), to.slice(b, 1), i, j);
  });
}

#define QRTOOL_FOR(T)                                                                         \
  template Strided<T> place_for(const qrtool_place&, const char*, index_t, index_t, index_t); \
  template void copy(const Strided<const T>&, const Strided<T>&, int);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR
template void copy(const Strided<const float>&, const Strided<double>&, int);
template void copy(const Strided<const std::complex<float>>&, const Strided<std::complex<double>>&,
                   int);
template void copy(const Strided<const double>&, const Strided<float>&, int);
template void copy(const Strided<const std::complex<double>>&, const Strided<std::complex<float>>&,
                   int);

}  // namespace qrtool::capi
