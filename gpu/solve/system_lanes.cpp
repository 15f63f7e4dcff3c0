// SPDX-License-Identifier: Apache-2.0
// system_lanes.cpp: which systems, and the launches. Device half: system_lanes.cl.
#include "gpu/solve/system_lanes.hpp"

#include <algorithm>

#include "gpu/tuning.hpp"

namespace qrtool {

Params system_lane_params(index_t n) {
  return {{"COLUMNS", static_cast<int>(std::min(n, tuning::solve_lane_columns))},
          {"GROUP", tuning::solve_lane_group}};
}

bool measures_by_lanes(index_t n) { return n <= tuning::solve_lane_columns; }

bool checks_by_lanes(index_t m, index_t n) {
  return measures_by_lanes(n) && m <= tuning::solve_lane_rows;
}

void enqueue_lane_measures(const SystemJob& job, Launcher& launch) {
  const int group = job.lane_params.at("GROUP");
  launch("measure_lane_factors", ceil_divide(job.shape.count, group), group, job.r, job.findings,
         job.inverse_norms, job.shape);
}

void enqueue_lane_check(const SystemJob& job, Launcher& launch) {
  const int group = job.lane_params.at("GROUP");
  const index_t sides = job.shape.count * static_cast<index_t>(job.shape.sides);
  launch("check_lane_solutions", ceil_divide(sides, group), group, job.a, job.b, job.r, job.x,
         job.findings, job.inverse_norms, job.errors, job.se, job.shape);
}

}  // namespace qrtool
