// SPDX-License-Identifier: Apache-2.0
// cpu_rates.hpp: how long the CPU backend takes, estimated from measurements.
#pragma once

#include "core/problem.hpp"

namespace qrtool {

/// The seconds in which `threads` threads factor a problem and measure its errors, by the rate of
/// the nearest shape that was measured. Processors differ by a few times.
double cpu_seconds(const Problem& problem, int threads);

}  // namespace qrtool
