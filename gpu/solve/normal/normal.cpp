// SPDX-License-Identifier: Apache-2.0
// normal.cpp: normal equations in float64 by teams of work-items: the sizes of blocks and teams,
// and the launch. Device half: normal.cl.
#include "gpu/solve/normal/normal.hpp"

#include <algorithm>

#include "gpu/solve/from_r/system_params.hpp"
#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

/// Blocks of columns, and the work-items of a system.
int blocks_across(const Params& params) {
  const int block = params.at("NORMAL_BLOCK");
  return (params.at("COLUMNS") + block - 1) / block;
}
int team_size(const Params& params) {
  const int across = blocks_across(params);
  return across * (across + 1) / 2;
}

/// So many work-items fill this part of the warps that they take.
double share_of_warps(int items) { return items / (32.0 * ((items + 31) / 32)); }

/// The fewest teams whose group nearly fills its warps.
int teams_of_group(int team) {
  int best = 1;
  for (int teams = 1; teams * team <= std::max(tuning::normal_most_group, team); ++teams) {
    if (best * team >= tuning::normal_least_group &&
        share_of_warps(best * team) >= tuning::normal_share)
      break;
    if (best * team < tuning::normal_least_group ||
        share_of_warps(teams * team) > share_of_warps(best * team))
      best = teams;
  }
  return best;
}

int block_columns(index_t n) {
  return n <= tuning::normal_small_columns ? 4 : n <= tuning::normal_middle_columns ? 8 : 6;
}

}  // namespace

Params normal_params(index_t n, ElementType type) {
  Params params{{"COLUMNS", static_cast<int>(n)},
                {"NORMAL_BLOCK", block_columns(n)},
                {"TILE_ROWS", tuning::normal_team_rows},
                // Products of float32 are exact in float64, and need no correction.
                {"MOST_STEPS", type == ElementType::float32 ? 1 : tuning::solve_most_steps}};
  params["TEAMS"] = teams_of_group(team_size(params));
  return params;
}

int normal_group_size(const Params& params) { return params.at("TEAMS") * team_size(params); }

namespace {

/// The arrays of SolveRoom.
std::size_t local_bytes(const Params& params) {
  const int across = blocks_across(params), width = across * params.at("NORMAL_BLOCK");
  const int team = team_size(params), rows = params.at("TILE_ROWS");
  const int parts = team > rows ? team / rows : 1;
  const int tile = (rows * (width | 1)) | 1;
  const int numbers = tile + rows + 6 * width + std::max(parts * rows, team);
  return static_cast<std::size_t>(params.at("TEAMS") * numbers) * sizeof(double) +
         open_counters * sizeof(int);
}

bool fits(const SolveProblem& p, const Limits& limits) {
  if (is_tall_system(p.m) || p.n > tuning::normal_most_columns) return false;
  const Params params = normal_params(p.n, p.type);
  return group_objection(normal_group_size(params), local_bytes(params), limits).empty();
}

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  launch("solve_normal", ceil_divide(job.shape.count, params.at("TEAMS")),
         normal_group_size(params), job.a, job.b, job.r, job.x, job.shape);
}

std::vector<SystemStep> steps(const SolveProblem& p, const Limits&) {
  return {{"gpu/solve/normal/normal.cl", normal_params(p.n, p.type), enqueue}};
}

}  // namespace

double normal_least_value(const SolveProblem& p, const Limits&) {
  return p.type == ElementType::float32 ? 0 : tuning::normal_least_value;
}

double normal_least_value_of_blocks(const SolveProblem& p, const Limits&) {
  return p.type == ElementType::float32 ? 0 : tuning::normal_tile_least_value;
}

SystemBody normal_body() {
  return {.name = "normal", .fits = fits, .steps = steps, .least_value = normal_least_value};
}

}  // namespace qrtool
