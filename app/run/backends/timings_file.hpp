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

/// Reads the file. Returns an empty object if there is none, or if it cannot be understood.
Timings load_timings();

/// Returns the path of the file: $QRTOOL_TIMINGS, else qrtool/timings.json in $XDG_CACHE_HOME or in
/// ~/.cache. Returns nothing if QRTOOL_TIMINGS is set and empty, or if there is no home.
std::optional<std::string> timings_path();

/// Adds the times of the devices of this process, and `samples`, to the file. Failures are ignored.
void remember_timings() noexcept;

/// Keeps a measurement for remember_timings().
void keep_sample(const DeviceInfo& info, const KeptSample& sample);

/// Returns the file of a device's table, which may not exist: timings.DEVICE.rates.csv beside
/// timings.json. Returns nothing if no times are kept.
std::optional<std::string> own_rates_path(const std::string& device);

/// Returns the table of a device, or null if there is none, or if it cannot be understood. The
/// table stays until the process ends.
const CostTable* own_rates(const std::string& device);

/// Removes the file and all tables, finished or not. Returns whether there was one. Errors:
/// OutputError.
bool forget_timings();

}  // namespace qrtool
