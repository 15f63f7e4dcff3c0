// SPDX-License-Identifier: Apache-2.0
// stopwatch.hpp: seconds of wall time.
#pragma once

#include <chrono>

namespace qrtool {

/// Starts when it is made.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace qrtool
