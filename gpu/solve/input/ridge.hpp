// SPDX-License-Identifier: Apache-2.0
// ridge.hpp: systems with a ridge, which are solved as plain systems whose A and b are longer:
//
//   min ||A x - b||^2 + l ||x||^2  =  min || [   A    ] x - [ b ] ||^2
//                                         || [ l^1/2 I]     [ 0 ] ||
//
// Device half: ridge.cl.
#pragma once

#include <string>

#include "core/solve/packing.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/solve/input/system_input.hpp"

namespace qrtool {

/// The problem that bodies solve and check: with the rows of the ridge, and without a ridge.
SolveProblem with_ridge_rows(const SolveProblem& problem);

/// Why a device leaves such a ridge to the CPU; empty where it does not.
std::string ridge_objection(const SolveProblem& problem);

/// Makes A, right sides and, where pairs.hpp takes them, weights longer: A by the rows of the
/// ridge, with its root rounded to the type of A, b by zeros, and the weights by ones. Does nothing
/// without a ridge.
void enqueue_ridge(FactorEngine& engine, const SolveProblem& problem, const SystemInput& input,
                   const InputShape& shape);

}  // namespace qrtool
