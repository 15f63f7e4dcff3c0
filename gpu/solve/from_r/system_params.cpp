// SPDX-License-Identifier: Apache-2.0
// system_params.cpp: work-groups, local memory and launches for systems of n columns. Device half:
// systems.cl.
#include "gpu/solve/from_r/system_params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/from_r/measures.hpp"
#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/from_r/wide.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

/// Work-items that solve a system: a power of two, 4 or more.
int team_size(index_t n) {
  if (n > tuning::solve_team_columns) return n <= 2 * tuning::solve_team_columns ? 128 : 256;
  const auto most = static_cast<std::uint64_t>(tuning::solve_most_team);
  return static_cast<int>(
      std::min(most, std::bit_ceil(static_cast<std::uint64_t>(std::max<index_t>(n, 4)))));
}

/// The arrays of DECLARE_ROOM of one team.
std::size_t room_bytes(index_t n, std::size_t element, int team, int rows, bool has_triangle) {
  const index_t of_r = has_triangle ? n * (n + 1) / 2 : team <= 32 ? 0 : 32 * 32;
  return element * static_cast<std::size_t>(std::max(rows * (n | 1), of_r)) +
         sizeof(double) * static_cast<std::size_t>(3 * n + team + rows);
}

}  // namespace

int system_group_size(const Params& params) { return params.at("TEAM") * params.at("TEAMS"); }

std::size_t system_local_bytes(index_t n, ElementType type, const Params& params) {
  const std::size_t team = room_bytes(n, size_of(type), params.at("TEAM"), params.at("TILE_ROWS"),
                                      params.at("TRIANGLE") != 0);
  return team * static_cast<std::size_t>(params.at("TEAMS")) + open_counters * sizeof(int);
}

Params system_params(index_t n, ElementType type, const Limits& limits) {
  const int team = team_size(n), teams = std::max(1, tuning::solve_least_group / team);
  const auto row = static_cast<std::size_t>((n | 1) * teams) * size_of(type);
  int rows = tuning::solve_tile_rows;
  while (rows > 1 && static_cast<std::size_t>(rows) * row > tuning::solve_tile_bytes) rows /= 2;
  const std::size_t room =
      room_bytes(n, size_of(type), team, rows, true) * static_cast<std::size_t>(teams);
  const bool has_room = room + open_counters * sizeof(int) <= limits.local_bytes;
  return {{"COLUMNS", static_cast<int>(n)},
          {"TEAM", team},
          {"TEAMS", teams},
          {"TILE_ROWS", rows},
          {"TRIANGLE", has_room},
          {"MOST_STEPS", tuning::solve_most_steps}};
}

std::string system_objection(const SolveProblem& problem, const Limits& limits) {
  if (std::string general = system_device_objection(problem); !general.empty()) return general;
  if (std::string of_ridge = ridge_objection(problem); !of_ridge.empty()) return of_ridge;
  if (is_wide(problem)) return wide_objection(problem, limits);
  const SolveProblem p = with_ridge_rows(problem);
  if (!limits.has_float64) return "the device has no float64";
  if (p.n > tuning::solve_most_columns)
    return fmt::format("more than {} columns", tuning::solve_most_columns);
  const Params params = system_params(p.n, p.type, limits);
  const std::string of_group =
      group_objection(system_group_size(params), system_local_bytes(p.n, p.type, params), limits);
  if (!of_group.empty()) return of_group;
  const Params measures = measure_params(p.n, p.type, limits);
  const std::string of_measures = group_objection(
      measure_group_size(measures), measure_local_bytes(p.n, p.type, measures), limits);
  if (!of_measures.empty() || !is_tall_system(p.m)) return of_measures;
  const Params tall = tall_system_params(p.n, p.type, limits);
  return group_objection(tall.at("TEAM"), system_local_bytes(p.n, p.type, tall), limits);
}

namespace {

bool fits(const SolveProblem& p, const Limits&) { return !is_tall_system(p.m); }

index_t groups_of(const SystemJob& job, const Params& params) {
  return ceil_divide(job.shape.count * static_cast<index_t>(job.shape.sides), params.at("TEAMS"));
}

void enqueue_solve(const SystemJob& job, const Params& params, Launcher& launch) {
  launch("solve_systems", groups_of(job, params), system_group_size(params), job.a, job.b, job.r,
         job.x, job.shape);
}

void enqueue_check(const SystemJob& job, const Params& params, Launcher& launch) {
  launch("check_solutions", groups_of(job, params), system_group_size(params), job.a, job.b, job.r,
         job.x, job.findings, job.of_columns, job.errors, job.se, job.shape);
}

constexpr std::string_view file = "gpu/solve/from_r/systems.cl";

std::vector<SystemStep> steps(const SolveProblem& p, const Limits& limits) {
  return after_mirror({file, system_params(p.n, p.type, limits), enqueue_solve});
}

std::vector<SystemStep> steps_of_check(const SolveProblem& p, const Limits& limits) {
  return {{file, system_params(p.n, p.type, limits), enqueue_check}};
}

}  // namespace

SystemBody systems_body() { return {.name = "systems", .fits = fits, .steps = steps}; }

SystemBody systems_check() { return {.name = "systems", .fits = fits, .steps = steps_of_check}; }

}  // namespace qrtool
