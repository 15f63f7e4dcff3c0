// SPDX-License-Identifier: Apache-2.0
// table.hpp: the columns of a text file. Their names, their places in the file and what is done
// with them stay together, whatever is left out.
#pragma once

#include <string>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// The use of a column: its numbers are read, its text is a key (io/csv/keyed_rows), or it is left
/// out for one of three reasons.
enum class ColumnRole { read, key, index, not_listed, not_selected };

struct TableColumn {
  std::string name = {};  // in the header; empty: it has none
  ColumnRole role = ColumnRole::read;
  index_t place = 0;  // of its number in a row that is read
};

struct Table {
  std::vector<TableColumn> columns = {};  // all of the file, in its order; empty: it is no text
  bool has_header = false;

  /// Returns the columns whose numbers make a row, by their numbers in the file, from 0, in the
  /// order of the row.
  std::vector<index_t> read_columns() const;
  /// Returns the names of these columns; empty if there is no header.
  std::vector<std::string> names() const;
  /// Returns labels that tell all columns of the file apart: "column 3" for a column without a
  /// name, and "x (column 3)" if several columns have one name.
  std::vector<std::string> labels() const;

  /// Keeps `count` of the columns that are read, from the place `first` on.
  void select(index_t first, index_t count, index_t step);
  /// Keeps the columns at these places of a row, in this order.
  void keep(const std::vector<index_t>& places);
};

}  // namespace qrtool
