// SPDX-License-Identifier: Apache-2.0
// rates.hpp: measures the samples of a device's table of costs (core/plan/cost.hpp).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "app/bench/contestants/baselines.hpp"
#include "core/plan/cost.hpp"

namespace qrtool {

/// The rows and columns of a sample.
using RateShape = std::pair<index_t, index_t>;

/// Returns the shapes of a table: multiples of the columns, powers of two, and both sides of the
/// numbers of rows and columns at which the time of some kernel jumps.
std::vector<RateShape> rate_shapes(bool is_cpu);

/// Adds a sample of each shape for every variant that a plan may choose and that can run the shape,
/// for every type, with Q and for R alone; on a device also for the ways to solve systems by normal
/// equations, if there are several. If `setup` forces a variant, only that one is measured. Samples
/// that the table has are not measured again. `save` is called after each shape, with the number of
/// shapes that are left. Errors: DeviceError if the device fails.
void measure_rates(const BenchSetup& setup, const std::vector<RateShape>& shapes,
                   CostTable::Reach reach, CostTable& table,
                   const std::function<void(std::size_t left)>& save);

}  // namespace qrtool
