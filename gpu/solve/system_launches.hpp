// SPDX-License-Identifier: Apache-2.0
// system_launches.hpp: the launches of the kernels for systems whose data are on the device.
#pragma once

#include <string_view>
#include <vector>

#include "core/solve/engines/system_device.hpp"
#include "core/solve/packing.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/solve/parts/system_buffers.hpp"

namespace qrtool {

/// `count` systems with `sides` right sides each, whose vectors lie as in a RightSideBlock.
SystemShape system_shape(const SolveProblem& problem, index_t count, index_t sides,
                         const VectorPlaces& of_b, const VectorPlaces& of_x);

/// The programs for systems with `sides` right sides each, with their kernels: by normal equations
/// where they take the systems and `route` allows them, otherwise without those that make R, of A'
/// where A is wide. A ridge is rows of A (with_ridge_rows).
/// shares_a: one A serves all systems, whose rows have weights or gaps of their own. No device is
/// needed.
std::vector<WantedKernels> wanted_by_systems(const SolveProblem& problem, index_t sides,
                                             const Limits& limits, SystemRoute route,
                                             bool shares_a);

/// What is the same for all sub-chunks: the problem, the variant of R, and the body by normal
/// equations that tests want (SystemBody::name).
struct SystemSetup {
  FactorEngine& engine;
  const SolveProblem& problem;
  const GpuVariant& variant;
  std::string_view forced_body = {};
};

/// Moments of a sub-chunk on the device; R alone is there at `factored`, and is not computed alone
/// by normal equations.
struct SystemEvents {
  Event begun, factored, solved, checked;
};

/// Enqueues x, and then the findings, the errors and the standard errors, from A and b.
SystemEvents enqueue_systems(const SystemSetup& setup, const FactorJob& factor,
                             const SystemBuffers& system, SystemShape shape, SystemRoute route);

/// The same for right sides of one A with weights or gaps of their own (pairs.hpp), which changes b
/// and a. `factor` has no A.
SystemEvents enqueue_pairs(const SystemSetup& setup, const FactorJob& factor, const Buffer& a,
                           const PairBuffers& pairs, const SystemBuffers& system,
                           SystemShape shape);

/// The same for systems with fewer rows than columns (wide.hpp): x has the least norm.
/// setup.problem is that of A', and so are the factors; `shape` is that of the systems themselves.
SystemEvents enqueue_wide(const SystemSetup& setup, const FactorJob& factor,
                          const WideBuffers& wide, const SystemBuffers& system,
                          const SystemShape& shape);

}  // namespace qrtool
