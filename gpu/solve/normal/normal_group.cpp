// SPDX-License-Identifier: Apache-2.0
// normal_group.cpp: normal equations in float64 by a group of warps for each system, on devices
// that multiply blocks of float64: the sizes of blocks and groups, and the launch. Device half:
// normal_group.cl.
#include "gpu/solve/normal/normal_group.hpp"

#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/normal.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 16;

Params params_for(const SolveProblem& p, const Limits& limits, std::int64_t spare_columns) {
  Params params{{"MMA", limits.float64_products},
                {"VECTOR", copied_entries(p.n, p.type)},
                {"BLOCKS", static_cast<int>(ceil_divide(p.n, block_columns))},
                // As in normal.cl.
                {"MOST_STEPS", p.type == ElementType::float32 ? 1 : tuning::solve_most_steps}};
  if (limits.float64_products && p.n <= spare_columns) {
    params["SPARE"] = 1;
    params[std::string(most_registers)] = tuning::normal_group_spare_registers;
  }
  return params;
}

int group_size(const Params& params) { return (params.at("BLOCKS") + 1) / 2 * warp_lanes(params); }

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  launch("solve_normal_group", job.shape.count, group_size(params), job.a, job.b, job.r, job.x,
         job.shape, static_cast<int>(job.n));
}

void enqueue_weighed(const SystemJob& job, const Params& params, Launcher& launch) {
  const PairBuffers& p = job.pairs;
  launch("solve_weighed_group", job.shape.count, group_size(params), p.gram, p.right, job.a, job.b,
         p.scaled, job.r, job.x, job.shape, static_cast<int>(job.n), p.gram_ld, p.right_ld);
}

/// GROUP_ROOM doubles, and the two vectors of a group.
std::size_t local_bytes(const Params& params) {
  constexpr int block_room = 288, pivot_room = block_room + 16;
  const int blocks = params.at("BLOCKS");
  const int room = (2 * blocks - 1) * block_room + pivot_room;
  return static_cast<std::size_t>(room + 2 * 16 * blocks) * sizeof(double) + sizeof(int);
}

Params own_params(const SolveProblem& p, const Limits& limits) {
  return params_for(p, limits, tuning::normal_group_spare_columns);
}

bool fits(const SolveProblem& p, const Limits& limits) {
  if (!limits.float64_products || is_tall_system(p.m)) return false;
  if (p.n <= tuning::normal_tile_most_columns || p.n > tuning::normal_group_most_columns)
    return false;
  const Params params = own_params(p, limits);
  return group_objection(group_size(params), local_bytes(params), limits).empty();
}

std::vector<SystemStep> steps(const SolveProblem& p, const Limits& limits) {
  return {{"gpu/solve/normal/normal_group.cl", own_params(p, limits), enqueue}};
}

Params weighed_params(const SolveProblem& p, const Limits& limits) {
  Params params = params_for(p, limits, tuning::weighed_group_spare_columns);
  params.erase("VECTOR");
  params["SUMS_GIVEN"] = 1;
  return params;
}

}  // namespace

std::string weighed_group_objection(const SolveProblem& p, const Limits& limits) {
  const Params params = weighed_params(p, limits);
  return group_objection(group_size(params), local_bytes(params), limits);
}

SystemStep weighed_group_step(const SolveProblem& p, const Limits& limits) {
  return {"gpu/solve/normal/normal_group.cl", weighed_params(p, limits), enqueue_weighed};
}

SystemBody normal_group_body() {
  return {.name = "normal_group",
          .fits = fits,
          .steps = steps,
          .least_value = normal_least_value_of_blocks};
}

}  // namespace qrtool
