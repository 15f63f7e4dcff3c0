// SPDX-License-Identifier: Apache-2.0
// tall_normal.cpp: the size and launch of normal equations for systems with many rows. Device
// half: tall_normal.cl.
#include "gpu/solve/tall_normal.hpp"

#include <limits>

#include "core/solve/backward_error.hpp"
#include "gpu/solve/normal.hpp"
#include "gpu/solve/normal_sums.hpp"

namespace qrtool {
namespace {

/// The arrays of solve_normal_sums.
std::size_t local_bytes(const Params& params) {
  const int block = params.at("BLOCK"), width = (params.at("COLUMNS") + block - 1) / block * block;
  return static_cast<std::size_t>(params.at("TEAMS") * 5 * width) * sizeof(double) +
         static_cast<std::size_t>(params.at("TEAMS")) * sizeof(int);
}

/// The largest ||a_j||^2 / d_j for which x is good without a correction. The error of normal
/// equations is about 2 cond(A) u, and cond(A)^2 about n times that ratio, columns scaled; an
/// eighth of the bar may go to it. Products of float32 are exact.
double most_ratio(const SystemJob& job) {
  if (job.type == ElementType::float32) return std::numeric_limits<double>::infinity();
  const int n = job.tall_normal_params.at("COLUMNS");
  const double most = solution_bar(job.type, job.shape.m, n) / (16 * 0x1p-52);
  return most * most / n;
}

}  // namespace

Params tall_normal_params(index_t n, ElementType type) {
  Params params = normal_params(n, type);
  params.erase("TILE_ROWS");
  params.erase("MOST_STEPS");
  return params;
}

bool takes_tall_normal(const SolveProblem& p, const Limits& limits) {
  if (!limits.fast_float64) return false;
  const Params params = tall_normal_params(p.n, p.type);
  return normal_sums_objection(p.n, p.type, limits).empty() &&
         group_objection(normal_group_size(params), local_bytes(params), limits).empty();
}

void enqueue_tall_normal_solve(const SystemJob& job, Launcher& launch) {
  const Params& params = job.tall_normal_params;
  launch("solve_normal_sums", ceil_divide(job.shape.count, params.at("TEAMS")),
         normal_group_size(params), job.tall.sums, job.r, job.tall.state, job.x, job.shape,
         most_ratio(job));
}

}  // namespace qrtool
