// SPDX-License-Identifier: Apache-2.0
// measure_ways.hpp: the two ways in which measure() goes through stored factors.
#pragma once

#include "app/run/measure/measure.hpp"

namespace qrtool {

/// Chunks of whole matrices, several threads.
StageSeconds measure_matrices(const FactoredInput& input, const MeasurePlan& plan,
                              const BarsOf& bars_of, const Listener& listener);

/// One matrix after another, plan.block_rows rows at a time.
StageSeconds measure_rows(const FactoredInput& input, const MeasurePlan& plan,
                          const BarsOf& bars_of, const Listener& listener);

/// P of a matrix from its n stored numbers. Errors: InputError where they are no permutation.
std::vector<index_t> stored_permutation(const FactoredInput& input, const double* numbers,
                                        index_t matrix);

}  // namespace qrtool
