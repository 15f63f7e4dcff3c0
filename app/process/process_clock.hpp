// SPDX-License-Identifier: Apache-2.0
// process_clock.hpp: the wall time of the process.
#pragma once

namespace qrtool {

/// Returns the seconds since the process was started. The system tells to a hundredth of a second
/// how long its libraries were being loaded; the least that this may mean is counted.
double process_seconds();

}  // namespace qrtool
