// SPDX-License-Identifier: Apache-2.0
// tall_systems.cpp: slabs of rows and the order of the launches. Device half: tall_systems.cl.
#include "gpu/solve/tall_systems.hpp"

#include <algorithm>

#include "gpu/solve/system_params.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

index_t right_sides(const SystemJob& job) {
  return job.shape.count * static_cast<index_t>(job.shape.sides);
}

/// The sums of all rows, in job.tall.sums. step: 0 for the first one, below 0 for the check.
void enqueue_sums_of_rows(const SystemJob& job, int step, Launcher& launch) {
  const SlabShape slabs = system_slabs(job.shape.m);
  const int team = job.tall_params.at("TEAM"), numbers = job.tall_params.at("COLUMNS") + 2;
  launch("sum_row_slabs", right_sides(job) * slabs.count, team, job.a, job.b, job.tall.state,
         job.tall.partial, job.shape, slabs, step);
  launch("combine_slabs", right_sides(job) * numbers, team, job.tall.partial, job.tall.sums, slabs);
}

}  // namespace

bool is_tall_system(index_t m) { return m > tuning::solve_group_rows; }

SlabShape system_slabs(index_t m) {
  const index_t rows = std::max(tuning::solve_slab_rows, ceil_divide(m, tuning::solve_most_slabs));
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

void enqueue_tall_steps(const SystemJob& job, int first, Launcher& launch) {
  const int team = job.tall_params.at("TEAM");
  for (int step = first; step < tuning::solve_most_steps; ++step) {
    enqueue_sums_of_rows(job, step, launch);
    launch("take_step", right_sides(job), team, job.tall.sums, job.r, job.tall.state, job.x,
           job.shape, step, static_cast<int>(step == tuning::solve_most_steps - 1));
  }
}

void enqueue_tall_check(const SystemJob& job, Launcher& launch) {
  enqueue_sums_of_rows(job, -1, launch);
  launch("finish_tall", right_sides(job), job.tall_params.at("TEAM"), job.tall.sums, job.r,
         job.tall.state, job.findings, job.inverse_norms, job.errors, job.se, job.shape);
}

}  // namespace qrtool
