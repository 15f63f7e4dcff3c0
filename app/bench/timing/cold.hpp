// SPDX-License-Identifier: Apache-2.0
// cold.hpp: empties caches between timed runs (`bench --cold`).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/backend/backend.hpp"

namespace qrtool {

/// Returns the size of the buffer that is written to empty the caches of this machine's CPU: twice
/// the size of the last level, and at least 64 MiB, because some machines do not say how large it
/// is.
std::size_t bytes_beyond_caches();

/// Empties the caches of the CPU: every thread writes its share of the buffer.
std::function<void()> flush_of_host(int threads);

/// Returns a function that empties the caches of the device of `backend`, or of the CPU if that is
/// the host. `backend` must outlive it. The function throws DeviceError.
std::function<void()> flush_of(Backend& backend, int threads);

}  // namespace qrtool
