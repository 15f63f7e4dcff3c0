// SPDX-License-Identifier: Apache-2.0
// clock.hpp: the clock by which work is timed.
#pragma once

#include <chrono>

namespace qrtool {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace qrtool
