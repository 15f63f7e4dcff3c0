// SPDX-License-Identifier: Apache-2.0
// guide.cpp: tries options and changes of a text one after another.
#include "io/csv/guide.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/csv/parser/lines.hpp"
#include "io/csv/parser/words.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

int duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

/// Tries remedies for a text that was refused.
class Guide {
 public:
  Guide(int descriptor, const std::string& name, const CsvReading& reading, std::uint64_t end)
      : descriptor_(descriptor),
        name_(name),
        reading_(reading),
        end_(end),
        trials_(end > (std::uint64_t{4} << 20) ? 16 : 100) {}

  /// Returns the hints of the list of remedies that leads to a readable text in the fewest steps,
  /// or an empty text.
  std::string hint_of(const CsvRefusal& refusal);
  /// Returns the line of names if it is found without doubt, else 0.
  index_t line_of_names(const CsvOptions& options);
  bool leads_on(WayOut way) { return cost_of(way, most_steps) < no_way; }

 private:
  static constexpr int most_steps = 5, no_way = 1000;
  TrialResult read(const WayOut& way, bool looks_for_numbers = false) {
    --trials_;
    return try_csv(duplicate(descriptor_), name_, way.options, reading_,
                   {.change = way.change, .looks_for_numbers = looks_for_numbers, .end = end_});
  }
  int cost_of(WayOut& way, int steps);
  bool leaves_out_text(WayOut& way);
  bool finds_names(WayOut& way) const;
  bool has_needed(const Table& table) const;

  int descriptor_;
  const std::string& name_;
  const CsvReading& reading_;
  std::uint64_t end_;
  int trials_;  // that are left
};

std::string Guide::hint_of(const CsvRefusal& refusal) {
  std::string best;
  int least = no_way;
  for (const std::vector<WayOut>& ways : refusal.ways()) {
    std::string hints;
    int cost = no_way;
    for (WayOut way : ways) {
      const int found = cost_of(way, most_steps);
      if (found < no_way) hints += (hints.empty() ? "" : "; ") + way.hint;
      cost = std::min(cost, found);
    }
    if (cost < least) best = hints;
    least = std::min(least, cost);
  }
  return best;
}

index_t Guide::line_of_names(const CsvOptions& options) {
  for (const WayOut::Names names : {WayOut::Names::are_first, WayOut::Names::are_last}) {
    WayOut way{.hint = "", .options = options, .names = names};
    if (cost_of(way, most_steps) < no_way && way.is_clear) return way.options.names_row;
  }
  return 0;
}

/// Returns the number of steps until the text can be read, or no_way. A step that leaves columns
/// out counts as many.
int Guide::cost_of(WayOut& way, int steps) {
  if (!way.is_tried) return no_way - 1;
  if (steps == 0 || trials_ <= 0) return no_way;
  const int own = way.leaves_text_out ? 10 : 1;
  try {
    if (way.leaves_text_out && !leaves_out_text(way)) return no_way;
    if (way.names != WayOut::Names::are_known && !finds_names(way)) return no_way;
    return has_needed(read(way).table) ? own : no_way;
  } catch (const CsvRefusal& next) {
    int least = no_way;
    for (const std::vector<WayOut>& ways : next.ways())
      for (WayOut each : ways)
        if (each.is_tried) least = std::min(least, cost_of(each, steps - 1));
    return std::min(least + own, no_way);
  } catch (const Error&) {
    return no_way;
  }
}

/// Finds the columns that the way out leaves out, which must hold no numbers, and completes it.
bool Guide::leaves_out_text(WayOut& way) {
  const bool is_stated = !way.hint.empty();
  WayOut all = way;
  if (is_stated) all.options.index_column = Answer::no;
  const auto [table, are_numbers] = read(all, /*looks_for_numbers=*/true);
  if (is_stated || are_numbers.empty()) return !are_numbers.empty() && !are_numbers.front();
  const std::vector<index_t> columns = table.read_columns();
  std::string list, names;
  index_t left_out = 0;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const auto column = static_cast<std::size_t>(columns[j]);
    if (are_numbers[j]) {
      list += (list.empty() ? "" : ",") + item_of(column, table);
    } else {
      names += (names.empty() ? "" : ", ") + quoted_text(table.labels()[column]);
      ++left_out;
    }
  }
  if (list.empty() || left_out == 0) return false;
  way.options.columns = list;
  way.hint =
      fmt::format("leave the column{} {} out: --columns {}", left_out == 1 ? "" : "s", names, list);
  return true;
}

/// Whether the fields are words and years that go up, as names of columns are: "country,2018,2019,
/// 2020".
bool are_of_years(const std::vector<std::string>& fields) {
  constexpr std::ptrdiff_t least = 3;
  return std::ranges::count_if(fields, begins_like_number) >= least &&
         std::ranges::any_of(fields, is_word) && are_years(fields);
}

/// Finds the line of names and the first row of numbers. Lines above and between them, such as
/// titles and units, are to be left out.
bool Guide::finds_names(WayOut& way) const {
  constexpr index_t most_lines = 100;
  TextLines lines(duplicate(descriptor_), escape(name_));
  std::vector<std::vector<std::string>> fields;  // of each line
  std::string separators;
  while (std::ssize(fields) < most_lines && lines.offset() < end_ && lines.next()) {
    const char separator =
        way.options.delimiter != 0 ? way.options.delimiter : find_separator(lines.text());
    fields.push_back(names_of(lines.text(), separator));
    separators += separator;
  }
  const auto is_number = [](const std::string& field) {
    return may_be_number(field, Decimal::point) || may_be_number(field, Decimal::comma) ||
           is_date(field);
  };
  const auto has_number = [&](std::size_t i) { return std::ranges::any_of(fields[i], is_number); };
  const auto is_row = [&](std::size_t i) {
    const bool is_last = i + 1 == fields.size();
    return has_number(i) && !are_of_years(fields[i]) &&
           (is_last || (fields[i + 1].size() == fields[i].size() && has_number(i + 1)));
  };
  std::size_t row = 0, names = 0;
  while (row < fields.size() && !is_row(row)) ++row;
  const auto fits = [&](std::size_t i) {
    return fields[i].size() == fields[row].size() && separators[i] == separators[row];
  };
  const auto may_be_names = [&](std::size_t i) {
    return fits(i) && (!has_number(i) || are_of_years(fields[i]));
  };
  while (names < row && row < fields.size() && !may_be_names(names)) ++names;
  if (names == row || row < 2 || row == fields.size()) return false;
  const bool is_last = way.names == WayOut::Names::are_last;
  const auto is_empty = [](const std::string& field) { return field.empty(); };
  if (is_last && (names + 1 == row || !may_be_names(row - 1) ||
                  std::ranges::any_of(fields[row - 1], is_empty)))
    return false;
  if (is_last) names = row - 1;
  // A line that looks like a row is never left out.
  for (std::size_t i = names + 1; i < row; ++i)
    if (has_number(i)) return false;
  way.is_clear = true;
  for (std::size_t i = 0; i < names; ++i)
    if (has_number(i) && fits(i)) way.is_clear = false;
  way.options.names_row = static_cast<index_t>(names) + 1;
  way.hint = fmt::format("if line {0} holds the names: --names-row {0}", names + 1);
  return true;
}

/// Whether the trial reads every column that the command needs, and at least one column of its
/// first list.
bool Guide::has_needed(const Table& table) const {
  index_t needed = 0;
  for (const std::string& list : reading_.needed) {
    const ColumnList asked{"", list};
    const std::vector<index_t> columns = choose_columns(asked, table, "");
    require_read(asked, columns, table, "");
    if (&list == &reading_.needed.front()) needed = std::ssize(columns);
  }
  return std::ssize(table.read_columns()) > needed || std::ssize(table.columns) <= needed;
}

/// Returns the offset at which a trial ends: a little beyond the line that the reader refused.
std::uint64_t end_of_trial(std::uint64_t offset) {
  constexpr std::uint64_t further = std::uint64_t{1} << 20, most = std::uint64_t{64} << 20;
  return std::min(offset + further, most);
}

}  // namespace

ShellInput shell_input(const std::string& name) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./,:@%";
  std::string file = name == standard_input ? "FILE" : escape(name);
  if (file.find_first_not_of(plain) != std::string::npos) file = "'" + file + "'";
  if (name.ends_with(".gz")) return {fmt::format("gunzip < {} | ", file), ""};
  if (name.ends_with(".zip")) return {fmt::format("unzip -p {} | ", file), ""};
  return {"", " < " + file};
}

std::string hint_that_leads_on(const CsvRefusal& refusal, int descriptor, const std::string& name,
                               const CsvReading& reading) {
  if (descriptor < 0) return "";
  return Guide(descriptor, name, reading, end_of_trial(refusal.offset())).hint_of(refusal);
}

index_t line_of_names(const CsvRefusal& refusal, int descriptor, const std::string& name,
                      const CsvOptions& options, const CsvReading& reading) {
  if (descriptor < 0 || reading.as_stored || !refusal.is_before_rows() || options.skip_rows > 0 ||
      options.header == Answer::no)
    return 0;
  return Guide(descriptor, name, reading, end_of_trial(refusal.offset())).line_of_names(options);
}

bool reads_as_table(const std::string& path) {
  try {
    const Descriptor file(open_rereadable(path));
    return Guide(file, path, {}, end_of_trial(0)).leads_on({.hint = "", .options = {}});
  } catch (const Error&) {
    return false;
  }
}

}  // namespace qrtool
