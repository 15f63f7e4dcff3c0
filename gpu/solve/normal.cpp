// SPDX-License-Identifier: Apache-2.0
// normal.cpp: the sizes of blocks and teams, and the launch. Device half: normal.cl.
#include "gpu/solve/normal.hpp"

#include <algorithm>

#include "gpu/solve/tall_normal.hpp"
#include "gpu/solve/tall_systems.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

/// Blocks of columns, and the work-items of a system.
int blocks_across(const Params& params) {
  const int block = params.at("BLOCK");
  return (params.at("COLUMNS") + block - 1) / block;
}
int team_size(const Params& params) {
  const int across = blocks_across(params);
  return across * (across + 1) / 2;
}

/// The part of the work-items of whole warps that work.
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

}  // namespace

namespace {

int block_columns(index_t n) {
  return n <= tuning::normal_small_columns ? 4 : n <= tuning::normal_middle_columns ? 8 : 6;
}

}  // namespace

Params normal_params(index_t n, ElementType type) {
  Params params{{"COLUMNS", static_cast<int>(n)},
                {"BLOCK", block_columns(n)},
                {"TILE_ROWS", tuning::normal_team_rows},
                // Products of float32 are exact in float64, and need no correction.
                {"MOST_STEPS", type == ElementType::float32 ? 1 : tuning::solve_most_steps}};
  params["TEAMS"] = teams_of_group(team_size(params));
  return params;
}

int normal_group_size(const Params& params) { return params.at("TEAMS") * team_size(params); }

namespace {

/// Whether a work-item takes a system.
bool is_for_lanes(const SolveProblem& p) {
  const bool has_rows =
      p.type == ElementType::float32 || p.m <= tuning::normal_lane_most_double_rows;
  return p.n <= tuning::normal_lane_most_columns && has_rows;
}

/// The arrays of SolveRoom.
std::size_t local_bytes(const Params& params) {
  const int across = blocks_across(params), width = across * params.at("BLOCK");
  const int team = team_size(params), rows = params.at("TILE_ROWS");
  const int parts = team > rows ? team / rows : 1;
  const int tile = (rows * (width | 1)) | 1;
  const int numbers = tile + rows + 6 * width + std::max(parts * rows, team);
  return static_cast<std::size_t>(params.at("TEAMS") * numbers) * sizeof(double) +
         open_counters * sizeof(int);
}

}  // namespace

bool takes_normal_equations(const SolveProblem& p, index_t sides, const Limits& limits) {
  if (sides != 1 || p.n > tuning::normal_most_columns) return false;
  if (is_tall_system(p.m)) return takes_tall_normal(p, limits);
  if (is_for_lanes(p)) return group_objection(tuning::normal_lane_group, 0, limits).empty();
  const Params params = normal_params(p.n, p.type);
  return group_objection(normal_group_size(params), local_bytes(params), limits).empty();
}

NormalBody normal_body(const SolveProblem& p, const Limits& limits) {
  if (is_for_lanes(p)) return NormalBody::lane;
  if (!limits.float64_products || p.n < tuning::normal_tile_least_columns) return NormalBody::team;
  return p.n <= tuning::normal_tile_most_columns ? NormalBody::warp : NormalBody::group;
}

double normal_least_value(ElementType type, double least_value, NormalBody body) {
  if (type == ElementType::float32) return least_value;
  const bool has_blocks = body == NormalBody::warp || body == NormalBody::group;
  return std::max(least_value,
                  has_blocks ? tuning::normal_tile_least_value : tuning::normal_least_value);
}

void enqueue_normal_solve(const SystemJob& job, Launcher& launch) {
  const index_t groups = ceil_divide(job.shape.count, job.normal_params.at("TEAMS"));
  launch("solve_normal", groups, normal_group_size(job.normal_params), job.a, job.b, job.r, job.x,
         job.shape);
}

}  // namespace qrtool
