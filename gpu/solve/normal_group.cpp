// SPDX-License-Identifier: Apache-2.0
// normal_group.cpp: normal equations in float64 by a group of warps for each system, on devices
// that multiply blocks of float64: the sizes of blocks and groups, and the launch. Device half:
// normal_group.cl.
#include "gpu/solve/normal.hpp"
#include "gpu/solve/system_bodies.hpp"
#include "gpu/solve/tall_systems.hpp"
#include "gpu/solve/tuning.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 16;

bool fits(const SolveProblem& p, const Limits&) {
  return !is_tall_system(p.m) && p.n > tuning::normal_tile_most_columns &&
         p.n <= tuning::normal_most_columns;
}

bool pays(const SolveProblem&, const Limits& limits) { return limits.float64_products; }

Params params_for(const SolveProblem& p, const Limits& limits) {
  Params params{{"MMA", limits.float64_products},
                {"VECTOR", copied_entries(p.n, p.type)},
                {"BLOCKS", static_cast<int>(ceil_divide(p.n, block_columns))},
                // As in normal.cl.
                {"MOST_STEPS", p.type == ElementType::float32 ? 1 : tuning::solve_most_steps}};
  if (limits.float64_products && p.n <= tuning::normal_group_spare_columns) {
    params["SPARE"] = 1;
    params[std::string(most_registers)] = tuning::normal_group_spare_registers;
  }
  return params;
}

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  const int warps = (params.at("BLOCKS") + 1) / 2;
  launch("solve_normal_group", job.shape.count, warps * warp_lanes(params), job.a, job.b, job.r,
         job.x, job.shape, static_cast<cl_int>(job.n));
}

std::vector<SystemStep> steps(const SolveProblem& p, const Limits& limits) {
  return {{"gpu/solve/normal_group.cl", params_for(p, limits), enqueue}};
}

}  // namespace

SystemBody normal_group_body() {
  return {.name = "normal_group",
          .fits = fits,
          .pays = pays,
          .steps = steps,
          .least_value = normal_least_value_of_blocks};
}

}  // namespace qrtool
