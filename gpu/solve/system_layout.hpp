// SPDX-License-Identifier: Apache-2.0
// system_layout.hpp: the sizes of the buffers for systems.
#pragma once

#include "core/solve/engines/system_device.hpp"
#include "gpu/solve/parts/system_buffers.hpp"

namespace qrtool {

/// The sizes for systems with `sides` right sides each, on a device with such limits.
SystemLayout system_layout(const SolveProblem& problem, index_t sides, const Limits& limits);

}  // namespace qrtool
