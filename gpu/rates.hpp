// SPDX-License-Identifier: Apache-2.0
// rates.hpp: the time that a problem will take on a GPU, estimated from measurements.
#pragma once

#include "core/problem.hpp"

namespace qrtool {

/// Seconds of the variant that the plan chooses, or of the copies to and from the device, whichever
/// takes longer, because they overlap. It is infinite if no variant takes the problem. The
/// estimate follows the measurement (tuning::measured_times) of the same type, and of the same
/// variant if there is one, whose shape is nearest, in proportion to the operations.
double device_seconds(const Problem& problem, const Limits& device);

}  // namespace qrtool
