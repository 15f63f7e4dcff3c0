// SPDX-License-Identifier: Apache-2.0
// normal_lane.cpp: normal equations in float64 by one work-item for each system of a few columns:
// the size of groups, what work-items keep, and the launch. Device half: normal_lane.cl.
#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/normal.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

bool fits(const SolveProblem& p, const Limits& limits) {
  return !is_tall_system(p.m) && p.n <= tuning::normal_lane_most_columns &&
         group_objection(tuning::normal_lane_group, 0, limits).empty();
}

Params params_for(const SolveProblem& p) {
  const bool is_single = p.type == ElementType::float32;
  const bool is_kept = !is_single && p.m * p.n <= tuning::normal_lane_most_kept;
  return {{"COLUMNS", static_cast<int>(p.n)},
          {"KEPT", is_kept ? static_cast<int>(p.m) : 0},
          {"GROUP", tuning::normal_lane_group},
          // As in normal.cl.
          {"MOST_STEPS", is_single ? 1 : tuning::solve_most_steps}};
}

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  const int group = params.at("GROUP");
  launch("solve_normal_lane", ceil_divide(job.shape.count, group), group, job.a, job.b, job.r,
         job.x, job.shape);
}

std::vector<SystemStep> steps(const SolveProblem& p, const Limits&) {
  return {{"gpu/solve/normal/normal_lane.cl", params_for(p), enqueue}};
}

}  // namespace

SystemBody normal_lane_body() {
  return {.name = "normal_lane", .fits = fits, .steps = steps, .least_value = normal_least_value};
}

}  // namespace qrtool
