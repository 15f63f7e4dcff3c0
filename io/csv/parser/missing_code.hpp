// SPDX-License-Identifier: Apache-2.0
// missing_code.hpp: a number such as -999 that may mean a missing one.
#pragma once

#include <cmath>
#include <optional>

#include "core/batch.hpp"

namespace qrtool {

/// Looks for a number of nines at an end of the numbers of a column, with a gap between them that
/// is longer than the range of all others: -999 among 0 to 20, but not among -998 to 0.
class MissingCode {
 public:
  void add(double number) {
    // Nearly all numbers lie between the ends.
    if (number > -lowest_.next && number < highest_.next) return void(++between_);
    lowest_.add(-number);
    highest_.add(number);
  }
  struct Found {
    double value = 0;
    index_t rows = 0;
  };
  std::optional<Found> find() const;

 private:
  /// The largest number, how often it came, and the next one.
  struct End {
    double most = 0, next = -HUGE_VAL;
    index_t count = 0, others = 0;
    void add(double number);
  };
  End lowest_, highest_;  // of the numbers times -1, and of the numbers
  index_t between_ = 0;
};

}  // namespace qrtool
