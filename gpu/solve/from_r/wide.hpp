// SPDX-License-Identifier: Apache-2.0
// wide.hpp: systems with fewer rows than columns, whose x has the least norm, by R of A'. Device
// half: wide.cl.
#pragma once

#include <string>
#include <vector>

#include "core/solve/packing.hpp"
#include "gpu/pipeline/buffers.hpp"
#include "gpu/solve/parts/system_body.hpp"

namespace qrtool {

/// The systems whose R is wanted: they have A' in place of A.
SolveProblem turned(const SolveProblem& problem);

/// Why a device leaves such wide systems to the CPU; empty where it does not.
std::string wide_objection(const SolveProblem& problem, const Limits& limits);

/// The bytes of a system that R and a system of n x n do not have.
std::size_t wide_bytes(const SolveProblem& problem, index_t sides);
/// Buffers for `count` systems with `sides` right sides each; `set` is their set of the pool.
WideBuffers wide_buffers(const SolveProblem& problem, index_t count, index_t sides, int set,
                         SystemPool& pool);

/// `to_turned` and `to_scaled` of `count` systems, for `problem`, as in SystemJob.
SystemStep wide_turn(const SolveProblem& problem, const Limits& limits);
/// x, and its check, once R of both is measured.
std::vector<SystemStep> wide_solution(const SolveProblem& problem, const Limits& limits);
SystemStep wide_check(const SolveProblem& problem, const Limits& limits);

}  // namespace qrtool
