// SPDX-License-Identifier: Apache-2.0
// own_rates.hpp: the tables of costs that the user has measured (bench --rates), one file for each
// device, beside the times of earlier runs (timings.hpp).
#pragma once

#include <optional>
#include <string>

#include "core/plan/cost.hpp"

namespace qrtool {

/// The file of a device, which may not exist: timings.DEVICE.rates.csv beside timings.json. None
/// where no times are kept.
std::optional<std::string> own_rates_path(const std::string& device);

/// The table of a device. Null where there is none, or none that can be understood. The table stays
/// until the process ends.
const CostTable* own_rates(const std::string& device);

/// Removes all of them, and those that were begun. Returns whether there was one. Errors:
/// OutputError.
bool forget_own_rates();

}  // namespace qrtool
