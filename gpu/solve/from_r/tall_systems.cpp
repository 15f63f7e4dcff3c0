// SPDX-License-Identifier: Apache-2.0
// tall_systems.cpp: slabs of rows, and the order of the launches. Device half: tall_systems.cl.
#include "gpu/solve/from_r/tall_systems.hpp"

#include <algorithm>

#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/from_r/system_params.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

index_t right_sides(const SystemJob& job) {
  return job.shape.count * static_cast<index_t>(job.shape.sides);
}

/// The sums of all rows, in job.tall.sums. step: 0 for the first one, below 0 for the check.
void enqueue_sums_of_rows(const SystemJob& job, const Params& params, int step, Launcher& launch) {
  const SlabShape slabs = system_slabs(job.shape.m, params.at("COLUMNS"));
  const int team = params.at("TEAM"), numbers = params.at("COLUMNS") + 2;
  launch("sum_row_slabs", right_sides(job) * slabs.count, team, job.a, job.b, job.tall.state,
         job.tall.partial, job.shape, slabs, step);
  launch("combine_slabs", right_sides(job) * numbers, team, job.tall.partial, job.tall.sums, slabs);
}

/// The steps from number `first` on, of which 0 is the one where x = 0.
void enqueue_steps(const SystemJob& job, const Params& params, int first, Launcher& launch) {
  const int team = params.at("TEAM");
  for (int step = first; step < tuning::solve_most_steps; ++step) {
    enqueue_sums_of_rows(job, params, step, launch);
    launch("take_step", right_sides(job), team, job.tall.sums, job.r, job.tall.state, job.x,
           job.shape, step, static_cast<int>(step == tuning::solve_most_steps - 1));
  }
}
void enqueue_all_steps(const SystemJob& job, const Params& params, Launcher& launch) {
  enqueue_steps(job, params, 0, launch);
}
void enqueue_later_steps(const SystemJob& job, const Params& params, Launcher& launch) {
  enqueue_steps(job, params, 1, launch);
}

void enqueue_check(const SystemJob& job, const Params& params, Launcher& launch) {
  enqueue_sums_of_rows(job, params, -1, launch);
  launch("finish_tall", right_sides(job), params.at("TEAM"), job.tall.sums, job.r, job.tall.state,
         job.findings, job.of_columns, job.errors, job.se, job.shape);
}

constexpr std::string_view file = "gpu/solve/from_r/tall_systems.cl";

bool fits(const SolveProblem& p, const Limits&) { return is_tall_system(p.m); }

std::vector<SystemStep> steps(const SolveProblem& p, const Limits& limits) {
  return after_mirror({file, tall_system_params(p.n, p.type, limits), enqueue_all_steps});
}

std::vector<SystemStep> steps_of_check(const SolveProblem& p, const Limits& limits) {
  return {{file, tall_system_params(p.n, p.type, limits), enqueue_check}};
}

}  // namespace

bool is_tall_system(index_t m) { return m > tuning::solve_group_rows; }

SlabShape system_slabs(index_t m, index_t n) {
  const index_t few = std::min(tuning::solve_slab_rows, tuning::solve_slab_entries / n);
  const index_t rows = std::max(few, ceil_divide(m, tuning::solve_most_slabs));
  return {.count = static_cast<int>(ceil_divide(m, rows)), .rows = static_cast<int>(rows)};
}

Params tall_system_params(index_t n, ElementType type, const Limits& limits) {
  Params params = system_params(n, type, limits);
  params.erase("MOST_STEPS");
  params["TEAM"] = std::max(params["TEAM"], tuning::solve_slab_team);
  params["TEAMS"] = 1;
  int rows = tuning::solve_most_tile_rows;
  const auto row = static_cast<std::size_t>(n | 1) * size_of(type);
  while (rows > 1 && static_cast<std::size_t>(rows) * row > tuning::solve_tile_bytes) rows /= 2;
  params["TILE_ROWS"] = rows;
  params["TRIANGLE"] = 1;
  if (system_local_bytes(n, type, params) > limits.local_bytes) params["TRIANGLE"] = 0;
  return params;
}

std::vector<SystemStep> tall_steps_after_first(const SolveProblem& p, const Limits& limits) {
  return after_mirror({file, tall_system_params(p.n, p.type, limits), enqueue_later_steps});
}

SystemBody tall_systems_body() { return {.name = "tall_systems", .fits = fits, .steps = steps}; }

SystemBody tall_systems_check() {
  return {.name = "tall_systems", .fits = fits, .steps = steps_of_check};
}

}  // namespace qrtool
