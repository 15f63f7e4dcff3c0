// SPDX-License-Identifier: Apache-2.0
// floor.hpp: the least time of a case: what it reads and writes, moved once.
#pragma once

#include "app/bench/table/table.hpp"
#include "core/backend/backend.hpp"

namespace qrtool {

/// Returns the bytes that the memory of the backend's device moves in a second, both read and
/// written, measured by a copy. It takes about a tenth of a second. Errors: DeviceError.
double moved_bytes_per_second(Backend& backend);

/// Returns the time in seconds to move A, Q and R, or A, b and x, once at `bytes_per_second`.
double floor_seconds(const BenchHeader& header, const BenchCase& size, double bytes_per_second);

}  // namespace qrtool
