// SPDX-License-Identifier: Apache-2.0
// tall_normal.cpp: normal equations in float64 for systems with many rows, after one pass over A
// (normal_sums.hpp). Device half: tall_normal.cl.
#include <limits>

#include "core/solve/backward_error.hpp"
#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/normal.hpp"
#include "gpu/solve/normal/normal_sums.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

/// The arrays of solve_normal_sums.
std::size_t local_bytes(const Params& params) {
  const int block = params.at("NORMAL_BLOCK"),
            width = (params.at("COLUMNS") + block - 1) / block * block;
  return static_cast<std::size_t>(params.at("TEAMS") * 5 * width) * sizeof(double) +
         static_cast<std::size_t>(params.at("TEAMS")) * sizeof(int);
}

/// The largest ||a_j||^2 / d_j for which x is good without a correction. The error of normal
/// equations is about 2 cond(A) u, and cond(A)^2 about n times that ratio, columns scaled; an
/// eighth of the bar may go to it. Products of float32 are exact.
double most_ratio(const SystemJob& job) {
  if (job.type == ElementType::float32) return std::numeric_limits<double>::infinity();
  const double most = solution_bar(job.type, job.shape.m, job.n) / (16 * 0x1p-52);
  return most * most / static_cast<double>(job.n);
}

Params params_for(const SolveProblem& p) {
  Params params = normal_params(p.n, p.type);
  params.erase("TILE_ROWS");
  params.erase("MOST_STEPS");
  return params;
}

bool fits(const SolveProblem& p, const Limits& limits) {
  if (!is_tall_system(p.m) || p.n > tuning::normal_most_columns || !limits.fast_float64) {
    return false;
  }
  const Params params = params_for(p);
  return normal_sums_objection(p.n, p.type, limits).empty() &&
         group_objection(normal_group_size(params), local_bytes(params), limits).empty();
}

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  launch("solve_normal_sums", ceil_divide(job.shape.count, params.at("TEAMS")),
         normal_group_size(params), job.tall.sums, job.r, job.tall.state, job.x, job.shape,
         most_ratio(job));
}

/// In float64 x of the sums is the first of the steps with A, and the others correct it.
std::vector<SystemStep> steps(const SolveProblem& p, const Limits& limits) {
  std::vector<SystemStep> list{normal_sums_step(p, limits),
                               {"gpu/solve/normal/tall_normal.cl", params_for(p), enqueue}};
  if (p.type == ElementType::float64) {
    const std::vector<SystemStep> later = tall_steps_after_first(p, limits);
    list.insert(list.end(), later.begin(), later.end());
  }
  return list;
}

/// As of the body that takes such systems with fewer rows.
double least_value(const SolveProblem& p, const Limits& limits) {
  SolveProblem shorter = p;
  shorter.m = tuning::solve_group_rows;
  const SystemBody* const body = chosen_normal_body(shorter, 1, limits);
  return body == nullptr ? normal_least_value(p, limits) : body->least_value(shorter, limits);
}

}  // namespace

SystemBody tall_normal_body() {
  return {.name = "tall_normal", .fits = fits, .steps = steps, .least_value = least_value};
}

}  // namespace qrtool
