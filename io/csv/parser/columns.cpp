// SPDX-License-Identifier: Apache-2.0
// columns.cpp: reads a list like "2-5,name,8-".
#include "io/csv/parser/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "core/whole_number.hpp"

namespace qrtool {
namespace {

/// One item of a list: columns by number, counted from 1, or a name.
struct Item {
  std::string text;
  bool is_name = false;
  index_t first = 0, last = 0;  // last 0: up to the last of the file
};

Item parse_item(const char* option, const std::string& text) {
  Item item{.text = text};
  const std::size_t dash = text.find('-');
  const auto first = whole_number(std::string_view(text).substr(0, dash));
  const bool is_open = dash != std::string::npos && dash + 1 == text.size();
  auto last = first;
  if (is_open) {
    last = 0;
  } else if (dash != std::string::npos) {
    last = whole_number(std::string_view(text).substr(dash + 1));
  }
  // No column has the number 0, but a column may have the name "0".
  item.is_name = !first || !last || (dash == std::string::npos && *first == 0);
  if (item.is_name) return item;
  item.first = *first;
  item.last = *last;
  if (item.first < 1 || (!is_open && item.last < item.first))
    throw UsageError(
        fmt::format("{}: '{}' names no columns; the first is 1, and a range goes upwards", option,
                    escape(text)));
  return item;
}

std::vector<Item> parse_list(const ColumnList& asked) {
  std::vector<Item> items;
  for (std::string text : split(asked.text, ',')) {
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
    text.erase(text.find_last_not_of(' ') + 1);
    if (text.empty())
      throw UsageError(fmt::format("{}: '{}' has an empty item", asked.option, escape(asked.text)),
                       fmt::format("for example {0} 2-5,8 or {0} height,weight", asked.option));
    items.push_back(parse_item(asked.option, text));
  }
  return items;
}

std::vector<index_t> columns_named(const std::string& name, const Table& table) {
  std::vector<index_t> found;
  for (std::size_t j = 0; j < table.columns.size(); ++j)
    if (table.columns[j].name == name) found.push_back(static_cast<index_t>(j));
  return found;
}

std::string list_of_names(const Table& table) {
  constexpr int most_listed = 12;
  std::string all;
  int listed = 0;
  for (const TableColumn& column : table.columns) {
    if (column.name.empty()) continue;
    if (listed++ == most_listed) return all + ", ...";
    all += (all.empty() ? "" : ", ") + escape(column.name);
  }
  return all;
}

/// "gdp-rain" is no range of names, because ranges are by number.
std::string range_by_number(const std::string& text, const Table& table) {
  for (std::size_t dash = text.find('-'); dash != std::string::npos;
       dash = text.find('-', dash + 1)) {
    const auto first = columns_named(text.substr(0, dash), table);
    const auto last = columns_named(text.substr(dash + 1), table);
    if (first.size() == 1 && last.size() == 1 && first[0] <= last[0])
      return fmt::format("{}-{}", first[0] + 1, last[0] + 1);
  }
  return "";
}

}  // namespace

bool is_name_of_column(const std::string& name, const Table& table) {
  return !columns_named(name, table).empty();
}

std::string item_of(std::size_t column, const Table& table) {
  const std::string& name = table.columns[column].name;
  const bool is_clear = name.find(',') == std::string::npos &&
                        name.find(' ') == std::string::npos &&
                        columns_named(name, table).size() == 1 && !name.empty() &&
                        !whole_number(name.substr(0, name.find('-')));
  if (is_clear) return escape(name);
  const std::string number = std::to_string(column + 1);
  return is_name_of_column(number, table) ? number + "-" + number : number;
}

namespace {

std::string hint_of_columns(const Table& table) {
  return table.has_header ? fmt::format("the columns are {}", list_of_names(table))
                          : fmt::format("the columns are 1 to {}", table.columns.size());
}

[[noreturn]] void throw_no_column(const char* option, const std::string& name, const Table& table,
                                  const std::string& place) {
  if (!table.has_header)
    throw InputError(fmt::format("{}there is no header with a column '{}'", place, escape(name)),
                     hint_of_columns(table));
  std::vector<std::string_view> candidates;
  for (const TableColumn& column : table.columns) candidates.push_back(column.name);
  const std::string what = fmt::format("{}there is no column '{}'", place, escape(name));
  if (const std::string range = range_by_number(name, table); !range.empty())
    throw InputError(what, fmt::format("ranges are by number: {} {}", option, range));
  const std::string_view near = nearest(name, candidates);
  throw InputError(what + (near.empty() ? "" : fmt::format("; did you mean '{}'?", escape(near))),
                   hint_of_columns(table));
}

index_t find_name(const char* option, const std::string& name, const Table& table,
                  const std::string& place) {
  const std::vector<index_t> found = columns_named(name, table);
  if (found.empty()) throw_no_column(option, name, table, place);
  if (found.size() == 1) return found.front();
  const auto item = [&](index_t column) {
    return item_of(static_cast<std::size_t>(column), table);
  };
  throw InputError(fmt::format("{}the columns {} and {} have the same name, '{}'", place,
                               found[0] + 1, found[1] + 1, escape(name)),
                   fmt::format("say which by its number: {0} {1} or {0} {2}", option,
                               item(found[0]), item(found[1])));
}

/// A number means the column at that position. If it is also the name of another column, the
/// meaning is not clear.
void refuse_two_meanings(const char* option, const Item& item, const Table& table,
                         const std::string& place) {
  if (item.text.find('-') != std::string::npos) return;
  for (const index_t named : columns_named(item.text, table)) {
    if (named + 1 == item.first) continue;
    throw InputError(
        fmt::format("{}{} {}: column {} has this number, and column {} this name", place, option,
                    item.text, item.first, named + 1),
        fmt::format("{0} {1}-{1} is the one with the number, {0} {2}-{2} the one with the name",
                    option, item.first, named + 1));
  }
}

}  // namespace

void check_columns(const ColumnList& list) { parse_list(list); }

bool chooses_by_name(const ColumnList& list, const std::vector<std::string>& names) {
  if (list.text.empty()) return false;
  const std::vector<Item> items = parse_list(list);
  return std::any_of(items.begin(), items.end(), [&](const Item& item) {
    return item.is_name && std::find(names.begin(), names.end(), item.text) != names.end();
  });
}

bool may_choose(const ColumnList& list, const Table& table) {
  if (is_name_of_column(list.text, table)) return true;
  const Item first = parse_list(list).front();
  if (is_name_of_column(first.text, table)) return true;
  return !first.is_name &&
         std::cmp_less_equal(std::max(first.first, first.last), table.columns.size());
}

std::vector<index_t> choose_columns(const ColumnList& list, const Table& table,
                                    const std::string& place) {
  const auto width = static_cast<index_t>(table.columns.size());
  std::vector<index_t> chosen;
  std::vector<bool> is_chosen(table.columns.size());
  const auto add = [&](index_t column, const std::string& text) {
    if (is_chosen.at(static_cast<std::size_t>(column)))
      throw UsageError(fmt::format("{}: '{}' names column {} a second time", list.option,
                                   escape(text), column + 1),
                       "name it once");
    is_chosen[static_cast<std::size_t>(column)] = true;
    chosen.push_back(column);
  };
  // The whole list may be one name that holds a comma.
  if (list.text.find(',') != std::string::npos && columns_named(list.text, table).size() == 1)
    return columns_named(list.text, table);
  for (const Item& item : parse_list(list)) {
    const index_t last = item.last == 0 ? width : item.last;
    const bool is_outside = std::max(item.first, last) > width;
    if (item.is_name || (is_outside && is_name_of_column(item.text, table))) {
      add(find_name(list.option, item.text, table, place), item.text);
      continue;
    }
    if (is_outside)
      throw InputError(fmt::format("{}{} {}: there are {} columns", place, list.option,
                                   escape(item.text), width),
                       hint_of_columns(table));
    refuse_two_meanings(list.option, item, table, place);
    for (index_t column = item.first; column <= last; ++column) add(column - 1, item.text);
  }
  return chosen;
}

void require_read(const ColumnList& list, const std::vector<index_t>& columns, const Table& table,
                  const std::string& place) {
  for (const index_t column : columns) {
    const TableColumn& asked = table.columns[static_cast<std::size_t>(column)];
    if (asked.role == ColumnRole::read) continue;
    const std::string name = escape(table.labels()[static_cast<std::size_t>(column)]);
    std::string all;
    for (const index_t read : table.read_columns())
      all += item_of(static_cast<std::size_t>(read), table) + ",";
    all += item_of(static_cast<std::size_t>(column), table);
    if (asked.role == ColumnRole::key)
      throw InputError(fmt::format("{}{}: {} holds the keys", place, list.option, name),
                       "a column of --by is text; name another column");
    if (asked.role == ColumnRole::index)
      throw InputError(
          fmt::format("{}{}: {} is the index, which is left out", place, list.option, name),
          "--index-column no reads it");
    if (asked.role == ColumnRole::not_listed)
      throw InputError(fmt::format("{}{}: --columns leaves out {}", place, list.option, name),
                       "--columns " + all);
    throw InputError(
        fmt::format("{}{}: the selection of the file leaves out {}", place, list.option, name),
        "give the file without its selection: --columns " + all);
  }
}

}  // namespace qrtool
