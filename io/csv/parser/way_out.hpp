// SPDX-License-Identifier: Apache-2.0
// way_out.hpp: what may be done about a text that is refused. A reader tries it before it says so.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/source/csv_options.hpp"
#include "io/text/number.hpp"

namespace qrtool {

/// Changes of a text that are made while it is read.
struct TextChange {
  Mend mend = nullptr;                 // of fields that are no numbers
  bool pads_rows = false;              // in a row with too few fields the last numbers are missing
  std::vector<index_t> left_out = {};  // lines
};

/// A hint, and the options or changes of the text that it stands for.
struct WayOut {
  std::string hint;
  CsvOptions options;
  TextChange change = {};
  // Whether it leaves columns out, which must not hold numbers. If `hint` is empty, the reader adds
  // the list of columns that hold numbers.
  bool leaves_text_out = false;
  // The reader looks for the line of names, and completes the hint and the options.
  enum class Names { are_known, are_first, are_last } names = Names::are_known;
  bool is_tried = true;   // false: a reader of tables cannot try it
  bool is_clear = false;  // `names` was looked for, and no line above looks like a row
};

/// Lists of ways out, the best list first. All ways of one list are offered together.
using WaysOut = std::vector<std::vector<WayOut>>;

/// The error of a text that cannot be read, with remedies.
class CsvRefusal : public InputError {
 public:
  CsvRefusal(const std::string& what, WaysOut ways) : InputError(what), ways_(std::move(ways)) {}
  const WaysOut& ways() const { return ways_; }

  /// Records the offset of the line at which reading stopped, and whether no row was read before.
  /// The reader calls it.
  void stop_at(std::uint64_t offset, bool is_before_rows) {
    offset_ = offset;
    is_before_rows_ = is_before_rows;
  }
  std::uint64_t offset() const { return offset_; }
  bool is_before_rows() const { return is_before_rows_; }

 private:
  WaysOut ways_;
  std::uint64_t offset_ = 0;
  bool is_before_rows_ = false;
};

}  // namespace qrtool
