// SPDX-License-Identifier: Apache-2.0
// normal_tile.cpp: normal equations in float64 by a warp for each system, on devices that multiply
// blocks of float64: the sizes of blocks and slabs, and the launch. Device half: normal_tile.cl.
#include <algorithm>

#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/normal.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 16, slab_rows = 16;

bool fits(const SolveProblem& p, const Limits& limits) {
  return limits.float64_products && !is_tall_system(p.m) && p.n <= tuning::normal_tile_most_columns;
}

Params params_for(const SolveProblem& p, const Limits& limits) {
  const index_t blocks = ceil_divide(p.n, block_columns);
  const bool is_full = p.m % slab_rows == 0 && p.n == blocks * block_columns;
  const int* stages = p.type == ElementType::float32 ? tuning::normal_tile_stages
                                                     : tuning::normal_tile_double_stages;
  return {{"MMA", limits.float64_products},
          {"BLOCKS", static_cast<int>(blocks)},
          {"LAST", static_cast<int>((p.n - 1) % block_columns / 4 + 1)},
          {"SLAB", static_cast<int>(slab_rows)},
          {"STAGES",
           static_cast<int>(std::min<index_t>(ceil_divide(p.m, slab_rows), stages[blocks - 1]))},
          {"FULL", is_full},
          // As in normal.cl.
          {"MOST_STEPS", p.type == ElementType::float32 ? 1 : tuning::solve_most_steps}};
}

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  launch("solve_normal_tile", job.shape.count, warp_lanes(params), job.a, job.b, job.r, job.x,
         job.shape, static_cast<int>(job.n));
}

std::vector<SystemStep> steps(const SolveProblem& p, const Limits& limits) {
  return {{"gpu/solve/normal/normal_tile.cl", params_for(p, limits), enqueue}};
}

}  // namespace

SystemBody normal_tile_body() {
  return {.name = "normal_tile",
          .fits = fits,
          .steps = steps,
          .least_value = normal_least_value_of_blocks};
}

}  // namespace qrtool
