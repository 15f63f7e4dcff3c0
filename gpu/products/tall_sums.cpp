// SPDX-License-Identifier: Apache-2.0
// tall_sums.cpp: groups, local memory and slabs. Device half: tall_sums.clh.
#include "gpu/products/tall_sums.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/model/gpu_variant.hpp"
#include "gpu/products/tuning.hpp"

namespace qrtool {
namespace {

/// Returns GRAM_SCRATCH. With matrix products this memory holds a ring of rows, and later the sums
/// of all warps and those of b.
int row_sums_scratch(const RowSums& sums) {
  const int n = static_cast<int>(sums.n), across = (n + 15) / 16;
  if (sums.body != 2) return 16 * 16 * across;
  const int blocks = n <= 8 ? 1 : n <= 16 ? 2 : n <= 32 ? 4 : n <= 48 ? 6 : 8;
  const int tiles = n <= 8 ? 1 : n <= 16 ? 2 : n <= 32 ? 5 : n <= 48 ? 11 : 18;
  const int warps = row_sums_group(sums.n, sums.body) / 32;
  const bool has_ring = n > 48 && sums.type == ElementType::float32;
  const int ring = n > 64 ? 2 * 32 * (128 + 8) : warps * 4 * 8 * (64 + 8);  // floats
  const int right = n > 64 ? 4 * 128 : 4 * warps * 8 * blocks;
  return std::max({has_ring ? ring / 2 : 0, tiles * 128, sums.has_right_side ? right : 0});
}

}  // namespace

int row_sums_body(const Limits& limits) { return limits.float64_products ? 2 : 1; }

int row_sums_group(index_t n, int body) {
  return body == 2 && n > tuning::tall_narrow_columns ? 128 : 256;
}

std::string row_sums_objection(const RowSums& sums) {
  constexpr index_t most_doubles = 64;
  if (sums.body == 1 || sums.type == ElementType::float32 || sums.n <= most_doubles) return {};
  return fmt::format("sums of float64 take at most {} columns", most_doubles);
}

std::size_t row_sums_local_bytes(const RowSums& sums) {
  return static_cast<std::size_t>(row_sums_scratch(sums)) * sizeof(double) + sizeof(int);
}

SlabShape row_sums_slabs(index_t m, index_t n) {
  const index_t most =
      n <= tuning::tall_thin_columns ? tuning::tall_thin_slabs : tuning::tall_slabs;
  const index_t rows = std::max(tuning::tall_slab_rows, ceil_divide(ceil_divide(m, most), 64) * 64);
  return {static_cast<int>(ceil_divide(m, rows)), static_cast<int>(rows)};
}

}  // namespace qrtool
