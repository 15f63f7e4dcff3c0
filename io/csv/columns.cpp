// SPDX-License-Identifier: Apache-2.0
// columns.cpp: reads a list like "2-5,name,8-".
#include "io/csv/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Columns from 1, or a name.
struct Item {
  std::string text;
  bool is_name = false;
  index_t first = 0, last = 0;  // last 0: up to the last of the file
};

std::optional<index_t> whole_number(std::string_view text) {
  index_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text[0] == '-') return {};
  return value;
}

Item parse_item(const std::string& text) {
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
  item.is_name = !first || !last;
  if (item.is_name) return item;
  item.first = *first;
  item.last = *last;
  if (item.first < 1 || (!is_open && item.last < item.first))
    throw UsageError(
        fmt::format("--columns: '{}' names no columns; the first is 1, and a range "
                    "goes upwards",
                    escape(text)));
  return item;
}

std::vector<Item> parse_list(const std::string& list) {
  std::vector<Item> items;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    std::string text = list.substr(at, end - at);
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
    text.erase(text.find_last_not_of(' ') + 1);
    if (text.empty())
      throw UsageError(fmt::format("--columns: '{}' has an empty item", escape(list)),
                       "for example --columns 2-5,8 or --columns height,weight");
    items.push_back(parse_item(text));
    at = end + 1;
  }
  return items;
}

index_t find_name(const std::string& name, const std::vector<std::string>& names,
                  const std::string& place) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return found - names.begin();
  if (names.empty())
    throw InputError(fmt::format("{}there is no header with a column '{}'", place, escape(name)),
                     "give the columns by their numbers, from 1");
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view near = nearest(name, candidates);
  std::string all;
  constexpr std::size_t most_listed = 12;
  for (std::size_t i = 0; i < std::min(names.size(), most_listed); ++i)
    if (!names[i].empty()) all += (all.empty() ? "" : ", ") + escape(names[i]);
  throw InputError(
      fmt::format("{}there is no column '{}'{}", place, escape(name),
                  near.empty() ? "" : fmt::format("; did you mean '{}'?", escape(near))),
      fmt::format("the columns are {}{}", all, names.size() > most_listed ? ", ..." : ""));
}

}  // namespace

void check_columns(const std::string& list) { parse_list(list); }

bool chooses_by_name(const std::string& list, const std::vector<std::string>& names) {
  if (list.empty()) return false;
  const std::vector<Item> items = parse_list(list);
  return std::any_of(items.begin(), items.end(), [&](const Item& item) {
    return item.is_name && std::find(names.begin(), names.end(), item.text) != names.end();
  });
}

std::vector<index_t> choose_columns(const std::string& list, const std::vector<std::string>& names,
                                    index_t width, const std::string& place) {
  std::vector<index_t> chosen;
  std::vector<bool> is_chosen(static_cast<std::size_t>(width));
  const auto add = [&](index_t column, const std::string& text) {
    if (is_chosen.at(static_cast<std::size_t>(column)))
      throw UsageError(
          fmt::format("--columns: '{}' names column {} a second time", escape(text), column + 1));
    is_chosen[static_cast<std::size_t>(column)] = true;
    chosen.push_back(column);
  };
  for (const Item& item : parse_list(list)) {
    if (item.is_name) {
      add(find_name(item.text, names, place), item.text);
      continue;
    }
    const index_t last = item.last == 0 ? width : item.last;
    if (std::max(item.first, last) > width) {
      const auto name = std::find(names.begin(), names.end(), item.text);
      throw InputError(
          fmt::format("{}--columns {}: there are {} columns", place, escape(item.text), width),
          name == names.end() ? ""
                              : fmt::format("the column with the name {0} is --columns {1}",
                                            escape(item.text), name - names.begin() + 1));
    }
    for (index_t column = item.first; column <= last; ++column) add(column - 1, item.text);
  }
  return chosen;
}

}  // namespace qrtool
