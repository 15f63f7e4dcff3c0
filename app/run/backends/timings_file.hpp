// SPDX-License-Identifier: Apache-2.0
// timings_file.hpp: the times of devices in small files of the user's: what earlier runs took, and
// beside it the tables of costs that bench --rates has measured, one for each device. They may be
// missing, damaged or out of reach at any time; nothing fails for it.
#pragma once

#include <optional>
#include <string>

#include "app/engine/timings.hpp"
#include "core/plan/cost.hpp"

namespace qrtool {

/// Reads the file. Empty where there is none, or none that can be understood.
Timings load_timings();

/// The file: $QRTOOL_TIMINGS, else qrtool/timings.json in $XDG_CACHE_HOME or in ~/.cache. None
/// where QRTOOL_TIMINGS is set and empty, or where there is no home.
std::optional<std::string> timings_path();

/// Adds to the file what the devices of this process have taken, and `samples`. Says nothing where
/// that fails.
void remember_timings() noexcept;

/// A measurement that remember_timings() is to add.
void keep_sample(const DeviceInfo& info, const KeptSample& sample);

/// The file of a device's table, which may not exist: timings.DEVICE.rates.csv beside timings.json.
/// None where no times are kept.
std::optional<std::string> own_rates_path(const std::string& device);

/// The table of a device. Null where there is none, or none that can be understood. The table stays
/// until the process ends.
const CostTable* own_rates(const std::string& device);

/// Removes the file and all tables, and those that were begun. Returns whether there was one.
/// Errors: OutputError.
bool forget_timings();

}  // namespace qrtool
