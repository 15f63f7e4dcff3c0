// SPDX-License-Identifier: Apache-2.0
// normal_group.cpp: the sizes of blocks and groups, and the launch. Device half: normal_group.cl.
#include "gpu/solve/normal_group.hpp"

#include <algorithm>

#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 16;

}  // namespace

Params normal_group_params(index_t n, ElementType type, const Limits& limits) {
  const index_t columns =
      std::clamp(n, tuning::normal_tile_most_columns + 1, tuning::normal_most_columns);
  Params params{{"MMA", limits.float64_products},
                {"VECTOR", copied_entries(n, type)},
                {"BLOCKS", static_cast<int>(ceil_divide(columns, block_columns))},
                // As in normal.cl.
                {"MOST_STEPS", type == ElementType::float32 ? 1 : tuning::solve_most_steps}};
  if (limits.float64_products && n <= tuning::normal_group_spare_columns) {
    params["SPARE"] = 1;
    params[std::string(most_registers)] = tuning::normal_group_spare_registers;
  }
  return params;
}

void enqueue_normal_groups(const SystemJob& job, Launcher& launch) {
  const int warps = (job.normal_group_params.at("BLOCKS") + 1) / 2;
  launch("solve_normal_group", job.shape.count, warps * warp_lanes(job.normal_group_params), job.a,
         job.b, job.r, job.x, job.shape, static_cast<cl_int>(job.params.at("COLUMNS")));
}

}  // namespace qrtool
