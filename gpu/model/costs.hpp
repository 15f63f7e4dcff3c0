// SPDX-License-Identifier: Apache-2.0
// costs.hpp: the tables of costs of the repository (gpu/rates), and which one holds for a device.
#pragma once

#include <string_view>

#include "core/plan/cost.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// The texts of gpu/rates/h100.csv and gpu/rates/cpu_device.csv.
std::string_view h100_rates();
std::string_view cpu_device_rates();

/// The table of the device itself where there is one (Limits::costs); otherwise that of an H100 for
/// a GPU, and that of a CPU with PoCL for any other device.
const CostTable& device_costs(const Limits& device);

}  // namespace qrtool
