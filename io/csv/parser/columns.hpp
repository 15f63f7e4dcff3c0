// SPDX-License-Identifier: Apache-2.0
// columns.hpp: the columns that an option names.
#pragma once

#include <string>
#include <vector>

#include "core/batch.hpp"
#include "io/source/table.hpp"

namespace qrtool {

/// An option's list of columns: numbers from 1, ranges of them, and names.
struct ColumnList {
  const char* option;
  std::string text;
};

/// Refuses a list that cannot mean columns of any file. Errors: UsageError.
void check_columns(const ColumnList& list);

/// Whether the list chooses one of these columns by its name.
bool chooses_by_name(const ColumnList& list, const std::vector<std::string>& names);

/// Whether the list may mean columns of this table: its first item is a name or a number of one.
bool may_choose(const ColumnList& list, const Table& table);

bool is_name_of_column(const std::string& name, const Table& table);

/// Returns the columns of the file, counted from 0, in the order of the list, including columns
/// that are not read. A number that is no position is taken as a name. `place` begins a message,
/// "file:line:1: ". Errors: InputError if the file has no such column, or if a name or a number
/// means two columns; UsageError if a column is named twice.
std::vector<index_t> choose_columns(const ColumnList& list, const Table& table,
                                    const std::string& place);

/// Returns the item of a list that names this column alone. Columns count from 0.
std::string item_of(std::size_t column, const Table& table);

/// Refuses a list that names a column which is not read. Errors: InputError.
void require_read(const ColumnList& list, const std::vector<index_t>& columns, const Table& table,
                  const std::string& place);

}  // namespace qrtool
