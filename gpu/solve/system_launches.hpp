// SPDX-License-Identifier: Apache-2.0
// system_launches.hpp: the launches of the kernels for systems whose data are on the device.
#pragma once

#include "core/solve/packing.hpp"
#include "core/solve/system_device.hpp"
#include "gpu/gpu_variant.hpp"
#include "gpu/host/engine.hpp"
#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// `count` systems with `sides` right sides each, whose vectors lie as in a RightSideBlock.
SystemShape system_shape(const SolveProblem& problem, index_t count, index_t sides,
                         const VectorPlaces& of_b, const VectorPlaces& of_x);

/// What is the same for all sub-chunks: the problem, the variant of R, the defines.
struct SystemSetup {
  SystemSetup(Engine& used, const SolveProblem& solved, const GpuVariant& of_r)
      : engine(used),
        problem(solved),
        variant(of_r),
        params(solved.m, solved.n, solved.type, used.info.limits) {}
  Engine& engine;
  const SolveProblem& problem;
  const GpuVariant& variant;
  SystemParams params;
};

/// Moments of a sub-chunk on the device; R alone is there at `factored`, and is not computed alone
/// by normal equations.
struct SystemEvents {
  cl::Event begun, factored, solved, checked;
};

/// Enqueues x, and then the findings, the errors and the standard errors, from A and b.
SystemEvents enqueue_systems(const SystemSetup& setup, const FactorJob& factor,
                             const SystemBuffers& system, SystemShape shape, SystemRoute route);

}  // namespace qrtool
