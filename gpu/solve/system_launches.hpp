// SPDX-License-Identifier: Apache-2.0
// system_launches.hpp: the launches of the kernels for systems whose data are on the device.
#pragma once

#include <string_view>
#include <vector>

#include "core/solve/engines/system_device.hpp"
#include "core/solve/packing.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/solve/input/system_input.hpp"
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

/// The data that all sub-chunks share. `given` and `plan` must outlive it.
struct SystemSetup {
  SystemSetup(FactorEngine& used, const SolveProblem& problem, const Plan& of_r,
              std::string_view body = {});

  /// Bytes of each system of a sub-chunk.
  MatrixBytes bytes(const InputShape& shape) const;
  /// Whether the kernels read A, or b, from another buffer than the one to which it was uploaded.
  bool makes_a() const { return is_wide || makes_b(); }
  bool makes_b() const { return given.ridge > 0; }

  FactorEngine& engine;
  const SolveProblem& given;
  bool is_wide;
  SolveProblem posed;   // with a ridge, longer A and b
  SolveProblem solved;  // what R is of: of wide systems A'
  const Plan& plan;     // of R
  const GpuVariant& variant;
  MatrixBytes factor_bytes;
  std::string_view forced_body;  // by normal equations, which tests want (SystemBody::name)
  bool is_prepared = false;      // the kernels are built
};

/// Some systems on the device.
struct PlacedSystems {
  InputShape shape;
  DeviceBuffers factor;
  SystemBuffers system;
  SystemInput input;
  WideBuffers wide;
};
/// Arrays that are on the device already, where the kernels take and leave them; null: others.
struct GivenArrays {
  Buffer a, b, x, se;
};
/// The buffers of set `set` of both pools. Errors: DeviceFailure.
PlacedSystems place_systems(const SystemSetup& setup, const InputShape& shape, int set,
                            BufferPool& factors, SystemPool& pool, const GivenArrays& given = {});

/// Moments of a sub-chunk on the device; R alone is there at `factored`, and is not computed alone
/// by normal equations.
struct SystemEvents {
  Event begun, factored, solved, checked;
};

/// Enqueues x, and then the findings, the errors and the standard errors, from the input that is
/// ready: by pairs.hpp, where the shape says so, which changes b and a; for systems with fewer rows
/// than columns by wide.hpp, with x of the least norm; or by the first body that takes them.
SystemEvents enqueue_systems(const SystemSetup& setup, PlacedSystems& placed, SystemShape shape,
                             SystemRoute route, SystemPool& pool);

}  // namespace qrtool
