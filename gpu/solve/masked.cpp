// SPDX-License-Identifier: Apache-2.0
// masked.cpp: which right sides masked.cl takes. Device half: masked.cl.
#include "gpu/solve/masked.hpp"

#include "gpu/tuning.hpp"

namespace qrtool {

bool masks_on_device(const SolveProblem& problem) {
  return problem.skips_missing && problem.n <= tuning::masked_most_columns;
}

int masked_sides(index_t n) { return n <= tuning::masked_pair_columns ? 2 : 1; }

Params masked_params(ElementType type) {
  // Products of float32 are exact in float64, and need no correction.
  return {{"CORRECTS", type == ElementType::float64}};
}

}  // namespace qrtool
