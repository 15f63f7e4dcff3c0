// SPDX-License-Identifier: Apache-2.0
// cpu_rates.hpp: how long the CPU backend takes, estimated from measurements.
#pragma once

#include "core/problem/problem.hpp"

namespace qrtool {

/// The seconds in which `threads` threads factor a problem and measure its errors, by the rate of
/// the nearest shape that was measured; R alone by no more than Q and R. Processors differ by a few
/// times.
double cpu_seconds(const Problem& problem, int threads);

/// The same for solutions of least squares with their check, `sides` right sides for each matrix.
/// `problem` is that of R.
double cpu_solve_seconds(const Problem& problem, index_t sides, int threads);

}  // namespace qrtool
