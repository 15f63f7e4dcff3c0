// SPDX-License-Identifier: Apache-2.0
// masked.cpp: which right sides masked.cl takes. Device half: masked.cl.
#include "gpu/solve/shared/masked.hpp"

#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {

bool masks_on_device(const SolveProblem& problem) {
  return problem.skips_missing && problem.n <= tuning::masked_most_columns;
}

Params masked_params(const SolveProblem& p) {
  const auto entries = static_cast<int>(p.n * (p.n + 1) / 2 + p.n);
  // Products of float32 are exact in float64, and need no correction.
  return {{"SLAB_COLUMNS", (entries + 1) / 2 * 2},
          {"SIDES", p.n <= tuning::masked_pair_columns ? 2 : 1},
          {"CORRECTS", p.type == ElementType::float64}};
}

std::vector<double> masked_rows(MatrixView<const double> a, const Params& params) {
  const auto width = static_cast<std::size_t>(params.at("SLAB_COLUMNS"));
  std::vector<double> rows(static_cast<std::size_t>(a.rows) * width);
  for (index_t i = 0; i < a.rows; ++i) {
    double* to = rows.data() + static_cast<std::size_t>(i) * width;
    for (index_t j = 0; j < a.cols; ++j)
      for (index_t k = 0; k <= j; ++k) *to++ = a(i, j) * a(i, k);
    for (index_t j = 0; j < a.cols; ++j) *to++ = a(i, j);
  }
  return rows;
}

}  // namespace qrtool
