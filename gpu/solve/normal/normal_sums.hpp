// SPDX-License-Identifier: Apache-2.0
// normal_sums.hpp: the launches of normal_sums.cl: A'A and A'b of systems with many rows.
#pragma once

#include <cstddef>
#include <string>

#include "gpu/solve/parts/system_body.hpp"

namespace qrtool {

/// Why a device cannot run it; empty where it can.
std::string normal_sums_objection(index_t n, ElementType type, const Limits& limits);
/// The bytes of a system's sums, over each slab and over all rows.
struct NormalSumsBytes {
  std::size_t partial, sums;
};
NormalSumsBytes normal_sums_bytes(index_t m, index_t n);

/// The sums of all systems.
SystemStep normal_sums_step(const SolveProblem& problem, const Limits& limits);

}  // namespace qrtool
