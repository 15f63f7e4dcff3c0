// SPDX-License-Identifier: Apache-2.0
// missing_code.hpp: a number such as -999 that may mean a missing one.
#pragma once

#include <optional>

#include "core/batch.hpp"

namespace qrtool {

/// Looks for a number of nines at an end of the numbers of a column, with a gap between them that
/// is longer than the range of all others: -999 among 0 to 20, but not among -998 to 0.
class MissingCode {
 public:
  void add(double number) {
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
    double most = 0, next = 0;
    index_t count = 0, others = 0;
    void add(double number);
  };
  End lowest_, highest_;
};

}  // namespace qrtool
