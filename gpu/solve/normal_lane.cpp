// SPDX-License-Identifier: Apache-2.0
// normal_lane.cpp: the size of groups, what work-items keep, and the launch. Device half:
// normal_lane.cl.
#include "gpu/solve/normal_lane.hpp"

#include <algorithm>

#include "gpu/tuning.hpp"

namespace qrtool {

Params normal_lane_params(index_t m, index_t n, ElementType type) {
  const bool is_single = type == ElementType::float32;
  const bool is_kept = !is_single && m * n <= tuning::normal_lane_most_kept;
  return {{"COLUMNS", static_cast<int>(std::min(n, tuning::normal_lane_most_columns))},
          {"KEPT", is_kept ? static_cast<int>(m) : 0},
          {"GROUP", tuning::normal_lane_group},
          // As in normal.cl.
          {"MOST_STEPS", is_single ? 1 : tuning::solve_most_steps}};
}

void enqueue_normal_lanes(const SystemJob& job, Launcher& launch) {
  const int group = job.normal_lane_params.at("GROUP");
  launch("solve_normal_lane", ceil_divide(job.shape.count, group), group, job.a, job.b, job.r,
         job.x, job.shape);
}

}  // namespace qrtool
