// SPDX-License-Identifier: Apache-2.0
// weights.cpp: rows with weights and missing rows. Device half: weigh.cl.
#include "gpu/solve/input/weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "gpu/model/gpu_variant.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

WeighShape weigh_shape(const SolveProblem& p, const WeighJob& job) {
  const auto items =
      std::bit_ceil(static_cast<unsigned>(std::min<index_t>(p.n, tuning::weigh_most_row_items)));
  return {.rows = job.systems * p.m,
          .m = static_cast<int>(p.m),
          .n = static_cast<int>(p.n),
          .row_items = static_cast<int>(items),
          .weights = !p.has_weights       ? 0
                     : job.shares_weights ? WEIGHTS_OF_ALL
                                          : WEIGHTS_OF_EACH,
          .skips_missing = p.skips_missing,
          .reserved = 0};
}

}  // namespace

void enqueue_weights(FactorEngine& engine, const SolveProblem& problem, const WeighJob& job) {
  const Params params{{"GROUP", tuning::weigh_group}};
  const WeighShape shape = weigh_shape(problem, job);
  Launcher launch = engine.launcher(
      {"gpu/solve/input/weigh.cl",
       defines_for({.type = problem.type}, params, ElementType::float64), "solving systems"});
  engine.compute->fill(job.left_out, 0, static_cast<std::size_t>(job.systems) * sizeof(int));
  launch("weigh_rows", ceil_divide(shape.rows, tuning::weigh_group / shape.row_items),
         tuning::weigh_group, job.source, job.a, job.b, job.w, job.left_out, shape,
         static_cast<int>(job.shares_a));
}

double freedom_factor(const SolveProblem& p, index_t left_out) {
  const index_t all = p.m - p.n, left = all - left_out;
  return left > 0 ? std::sqrt(static_cast<double>(all) / static_cast<double>(left))
                  : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace qrtool
