// SPDX-License-Identifier: Apache-2.0
// normal_sums.hpp: the launches of normal_sums.cl: A'A and A'b of systems with many rows.
#pragma once

#include <cstddef>
#include <string>

#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// The defines of normal_sums.cl for n columns.
Params normal_sums_params(index_t n, ElementType type, const Limits& limits);
/// Why a device cannot run it; empty where it can.
std::string normal_sums_objection(index_t n, ElementType type, const Limits& limits);
/// The bytes of a system's sums, over each slab and over all rows.
struct NormalSumsBytes {
  std::size_t partial, sums;
};
NormalSumsBytes normal_sums_bytes(index_t m, index_t n);

/// Enqueues the sums of all systems.
void enqueue_normal_sums(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
