// SPDX-License-Identifier: Apache-2.0
// system_lanes.cpp: the measures of R and the check for systems of few columns, a work-item for
// each. Device half: system_lanes.cl.
#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

constexpr std::string_view file = "gpu/solve/from_r/system_lanes.cl";

bool measures(const SolveProblem& p, const Limits&) { return p.n <= tuning::solve_lane_columns; }

bool checks(const SolveProblem& p, const Limits& limits) {
  return measures(p, limits) && p.m <= tuning::solve_lane_rows;
}

Params params_for(const SolveProblem& p) {
  return {{"COLUMNS", static_cast<int>(p.n)}, {"GROUP", tuning::solve_lane_group}};
}

void enqueue_measures(const SystemJob& job, const Params& params, Launcher& launch) {
  const int group = params.at("GROUP");
  launch("measure_lane_factors", ceil_divide(job.shape.count, group), group, job.r, job.findings,
         job.of_columns, job.shape);
}

void enqueue_check(const SystemJob& job, const Params& params, Launcher& launch) {
  const int group = params.at("GROUP");
  const index_t sides = job.shape.count * static_cast<index_t>(job.shape.sides);
  launch("check_lane_solutions", ceil_divide(sides, group), group, job.a, job.b, job.r, job.x,
         job.findings, job.of_columns, job.errors, job.se, job.shape);
}

std::vector<SystemStep> steps_of_measures(const SolveProblem& p, const Limits&) {
  return {{file, params_for(p), enqueue_measures}};
}

std::vector<SystemStep> steps_of_check(const SolveProblem& p, const Limits&) {
  return {{file, params_for(p), enqueue_check}};
}

}  // namespace

SystemBody system_lanes_measures() {
  return {.name = "system_lanes", .fits = measures, .steps = steps_of_measures};
}

SystemBody system_lanes_check() {
  return {.name = "system_lanes", .fits = checks, .steps = steps_of_check};
}

}  // namespace qrtool
