// SPDX-License-Identifier: Apache-2.0
// cpu_rates.hpp: how long the CPU backend takes, estimated from measurements.
#pragma once

#include "core/plan/cost.hpp"
#include "core/plan/estimate.hpp"

namespace qrtool {

/// runs.csv: processor time of one thread for a matrix with its check, of Q and R ("run/factor"),
/// of R alone, and of the solution for one right side ("run/solve"). Intel Xeon (Sapphire Rapids,
/// AVX-512), 2026-11-23. `qrtool_cpu_rates` (tests/peers) writes the table again.
const CostTable& cpu_runs();

/// Returns the seconds in which `threads` threads do the work and measure its errors, by the rate
/// of the nearest shape that was measured. R alone takes no longer than Q and R. Processors differ
/// by a few times.
double cpu_seconds(const Work& work, int threads);

}  // namespace qrtool
