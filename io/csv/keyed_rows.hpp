// SPDX-License-Identifier: Apache-2.0
// keyed_rows.hpp: reads a table whose rows have keys, such as a date or a name, in one pass. A key
// is text, whatever it looks like: 007 and 7 are two.
#pragma once

#include <span>
#include <string>

#include "io/read/reader.hpp"

namespace qrtool {

/// Takes the rows of a table, in their order.
class KeyedRows {
 public:
  virtual ~KeyedRows() = default;
  /// Comes before the first row. The columns with the role `read` make its numbers.
  virtual void begin(const Table& table) = 0;
  /// A key has neither the quotes of its field nor blanks around it that stand outside of quotes.
  virtual void add(std::span<const std::string> keys, std::span<const double> numbers) = 0;
};

/// Reads all rows of the text that spec.path, spec.csv and spec.scratch describe. `keys` is a list
/// of columns, as for --columns. Returns a description of the text. Errors: InputError, at the
/// first bad row.
Source read_keyed_rows(const InputSpec& spec, const std::string& keys, KeyedRows& rows);

}  // namespace qrtool
