// SPDX-License-Identifier: Apache-2.0
// table.cpp: which columns of a table are read, and what they are called.
#include "io/source/table.hpp"

#include <fmt/format.h>

#include <map>

namespace qrtool {

std::vector<index_t> Table::read_columns() const {
  index_t count = 0;
  for (const TableColumn& column : columns) count += column.role == ColumnRole::read ? 1 : 0;
  std::vector<index_t> read(static_cast<std::size_t>(count));
  for (std::size_t j = 0; j < columns.size(); ++j)
    if (columns[j].role == ColumnRole::read)
      read[static_cast<std::size_t>(columns[j].place)] = static_cast<index_t>(j);
  return read;
}

std::vector<std::string> Table::names() const {
  std::vector<std::string> names;
  if (!has_header) return names;
  for (const index_t column : read_columns())
    names.push_back(columns[static_cast<std::size_t>(column)].name);
  return names;
}

std::vector<std::string> Table::labels() const {
  std::map<std::string_view, int> counts;
  for (const TableColumn& column : columns) ++counts[column.name];
  std::vector<std::string> labels;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const std::string& name = columns[j].name;
    labels.push_back(name.empty()       ? fmt::format("column {}", j + 1)
                     : counts[name] > 1 ? fmt::format("{} (column {})", name, j + 1)
                                        : name);
  }
  return labels;
}

void Table::select(index_t first, index_t count, index_t step) {
  std::vector<index_t> places;
  for (index_t j = 0; j < count; ++j) places.push_back(first + j * step);
  keep(places);
}

void Table::keep(const std::vector<index_t>& places) {
  if (columns.empty()) return;
  const std::vector<index_t> read = read_columns();
  std::vector<index_t> kept;
  for (const index_t place : places) kept.push_back(read[static_cast<std::size_t>(place)]);
  for (const index_t column : read)
    columns[static_cast<std::size_t>(column)].role = ColumnRole::not_selected;
  for (std::size_t j = 0; j < kept.size(); ++j) {
    TableColumn& column = columns[static_cast<std::size_t>(kept[j])];
    column.role = ColumnRole::read;
    column.place = static_cast<index_t>(j);
  }
}

}  // namespace qrtool
