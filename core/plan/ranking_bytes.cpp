// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ranking_bytes.hpp"

#include "core/eigen/eigen_qr.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

std::size_t ranking_bytes(const Problem& problem) {
  const auto k = static_cast<std::size_t>(problem.k()), n = static_cast<std::size_t>(problem.n);
  // R as it is, in the RankedFactor three times, and pivoted three times; Q2.
  return (7 * k * n + 2 * k * k) * sizeof(double) *
         static_cast<std::size_t>(parts_in(problem.type));
}

std::size_t ranked_worker_bytes(const Problem& problem, int threads_per_matrix) {
  if (!problem.ranks()) return 0;
  std::size_t bytes = ranking_bytes(problem);
  if (problem.pivots && problem.check != Check::none)
    bytes +=
        problem.input_bytes() +
        ErrorFinder::workspace_bytes(measured_shape(problem, threads_per_matrix), problem.check);
  if (may_factor_again(problem)) bytes += eigen_qr_workspace_bytes(problem);
  return bytes;
}

ErrorFinder::Shape measured_shape(const Problem& problem, int threads) {
  return {.m = problem.m,
          .n = problem.n,
          .q_cols = problem.q_cols(),
          .r_rows = problem.r_rows(),
          .most_threads = threads,
          .is_complex = is_complex(problem.type)};
}

bool may_factor_again(const Problem& problem) {
  return problem.pivots && problem.wants_q() && problem.m <= rows_near_bar;
}

}  // namespace qrtool
