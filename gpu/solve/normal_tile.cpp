// SPDX-License-Identifier: Apache-2.0
// normal_tile.cpp: the sizes of blocks and slabs, and the launch. Device half: normal_tile.cl.
#include "gpu/solve/normal_tile.hpp"

#include <algorithm>

#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 16, slab_rows = 16;

}  // namespace

Params normal_tile_params(index_t m, index_t n, ElementType type, const Limits& limits) {
  const index_t blocks = ceil_divide(std::min(n, tuning::normal_tile_most_columns), block_columns);
  const bool is_full = m % slab_rows == 0 && n == blocks * block_columns;
  const int* stages =
      type == ElementType::float32 ? tuning::normal_tile_stages : tuning::normal_tile_double_stages;
  return {{"MMA", limits.float64_products},
          {"BLOCKS", static_cast<int>(blocks)},
          {"LAST", static_cast<int>((n - 1) % block_columns / 4 + 1)},
          {"SLAB", static_cast<int>(slab_rows)},
          {"STAGES",
           static_cast<int>(std::min<index_t>(ceil_divide(m, slab_rows), stages[blocks - 1]))},
          {"FULL", is_full},
          // As in normal.cl.
          {"MOST_STEPS", type == ElementType::float32 ? 1 : tuning::solve_most_steps}};
}

void enqueue_normal_tiles(const SystemJob& job, Launcher& launch) {
  launch("solve_normal_tile", job.shape.count, warp_lanes(job.normal_tile_params), job.a, job.b,
         job.r, job.x, job.shape, static_cast<cl_int>(job.params.at("COLUMNS")));
}

}  // namespace qrtool
