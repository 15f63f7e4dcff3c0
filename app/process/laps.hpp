// SPDX-License-Identifier: Apache-2.0
// laps.hpp: the wall time of a run, divided without gaps.
#pragma once

#include "app/process/stopwatch.hpp"

namespace qrtool {

/// Measures how long each stage (lap) of a run takes, on the thread that leads the run. The first
/// lap begins `before` seconds before the object is made.
class Laps {
 public:
  explicit Laps(double before = 0) : before_(before), last_(-before) {}

  /// Returns the seconds of the lap that ends here. The next one begins.
  double lap() {
    const double now = watch_.seconds(), seconds = now - last_;
    last_ = now;
    return seconds;
  }
  /// Returns the seconds of all laps.
  double total() const { return before_ + last_; }

 private:
  double before_, last_;
  Stopwatch watch_;
};

}  // namespace qrtool
