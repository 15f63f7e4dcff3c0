// SPDX-License-Identifier: Apache-2.0
// measures.cpp: teams and local memory, and the launch. Device half: measures.cl.
#include "gpu/solve/from_r/measures.hpp"

#include <algorithm>
#include <bit>

#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {

int measure_group_size(const Params& params) { return params.at("TEAM") * params.at("TEAMS"); }

/// The arrays of MeasureRoom, where sums go through local memory.
std::size_t measure_local_bytes(index_t n, ElementType type, const Params& params) {
  const index_t entries = params.at("TRIANGLE") != 0 ? n * (n + 1) / 2 : 0;
  const index_t team = params.at("TEAM");
  const index_t triangle = (entries + 31) / 32 * 32 + team % 32;
  return static_cast<std::size_t>(params.at("TEAMS")) *
         (static_cast<std::size_t>(triangle) * size_of(type) +
          static_cast<std::size_t>(8 + 4 * team) * sizeof(double));
}

Params measure_params(index_t n, ElementType type, const Limits& limits) {
  const index_t owners = std::max<index_t>(4, ceil_divide(n, tuning::measure_owned_columns));
  const int team = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(owners)));
  const int most = std::max(1, tuning::measure_least_group / team);
  Params params{{"COLUMNS", static_cast<int>(n)}, {"TEAM", team}, {"TEAMS", most}, {"TRIANGLE", 1}};
  while (params["TEAMS"] > 1 && measure_local_bytes(n, type, params) > limits.local_bytes)
    params["TEAMS"] /= 2;
  if (measure_local_bytes(n, type, params) > limits.local_bytes) {
    params["TRIANGLE"] = 0;
    params["TEAMS"] = most;
  }
  return params;
}

namespace {

bool fits(const SolveProblem&, const Limits&) { return true; }

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  const index_t groups = ceil_divide(job.shape.count, params.at("TEAMS"));
  launch("measure_factors", std::min(groups, job.factor_groups), measure_group_size(params), job.r,
         job.findings, job.of_columns, job.scratch, job.shape, static_cast<int>(job.factor_groups));
}

std::vector<SystemStep> steps(const SolveProblem& p, const Limits& limits) {
  return {{"gpu/solve/from_r/measures.cl", measure_params(p.n, p.type, limits), enqueue}};
}

}  // namespace

SystemBody measures_body() { return {.name = "measures", .fits = fits, .steps = steps}; }

}  // namespace qrtool
