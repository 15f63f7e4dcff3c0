// SPDX-License-Identifier: Apache-2.0
// pairs.hpp: many right sides of one A, each with weights or gaps of its own, by normal equations
// whose Gram matrices are one product. Device half: pairs.cl.
#pragma once

#include <vector>

#include "gpu/pipeline/buffers.hpp"
#include "gpu/solve/parts/system_body.hpp"

namespace qrtool {

/// Whether such right sides are taken on a device with these limits.
bool takes_pairs(const SolveProblem& problem, const Limits& limits);

/// What cut_chunk() divides the device's memory by: R of each right side and what its sums need;
/// and the buffers of R alone, without A and without work of a variant.
MatrixBytes pair_bytes(const MatrixBytes& of_factor, const SolveProblem& problem);
MatrixBytes bytes_of_r(const MatrixBytes& of_factor);

/// All of PairBuffers but the buffers, with weights of each right side.
PairBuffers without_buffers(const SolveProblem& problem);
/// Buffers of the pool for `count` right sides, all but the weights and left_out. All sets use the
/// same, since the kernels run one after another. Errors: DeviceFailure.
PairBuffers pair_buffers(const SolveProblem& problem, index_t count, SystemPool& pool);

/// The rows that do not count become zero in b and, where all right sides leave them out, in A; x
/// and R, by the sums of all right sides.
std::vector<SystemStep> pair_solutions(const SolveProblem& problem, const Limits& limits);
/// The errors and standard errors, after the measures of R.
std::vector<SystemStep> pair_check(const SolveProblem& problem, const Limits& limits);

}  // namespace qrtool
