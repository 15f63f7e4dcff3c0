// SPDX-License-Identifier: Apache-2.0
// system_input.hpp: A, b and the weights of a sub-chunk as they come to the device, and as the
// bodies read them.
#pragma once

#include "core/solve/packing.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/solve/parts/system_buffers.hpp"

namespace qrtool {

/// The systems of a sub-chunk, and what they have in common.
struct InputShape {
  index_t systems = 0, sides = 0;  // right sides of each
  bool shares_a = false, shares_weights = false;
  bool by_pairs = false;       // whether pairs.hpp solves them, which copies A for no system
  bool sides_are_rows = true;  // as in a RightSideBlock

  index_t matrices() const { return shares_a ? 1 : systems; }
  index_t vectors_of_weights() const { return shares_weights ? 1 : systems; }
};

/// The buffers of a sub-chunk's input. They are one and the same where the device makes nothing
/// else of it.
struct SystemInput {
  struct Arrays {
    Buffer a, b, w;
  };
  Arrays uploaded;
  /// A once its rows are weighed, which gives every system its own, unless by_pairs. b and the
  /// weights stay where they are.
  Buffer weighed_a;
  /// With the rows of a ridge. A of wide systems is not turned yet.
  Arrays ready;
};

/// The buffers in set `set` of the pool, and in those of the factors and the systems. `given`:
/// where A and b are on the device already; null: nowhere. Errors: DeviceFailure.
SystemInput input_buffers(const SolveProblem& problem, const InputShape& shape,
                          const FactorJob& factor, const SystemBuffers& system,
                          const SystemInput::Arrays& given, int set, SystemPool& pool);

}  // namespace qrtool
