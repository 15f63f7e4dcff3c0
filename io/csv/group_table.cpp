// SPDX-License-Identifier: Apache-2.0
// group_table.cpp: writes a line for each group.
#include "io/csv/group_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/text.hpp"
#include "io/csv/fields.hpp"
#include "io/csv/writer.hpp"
#include "io/file/file_set.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

bool is_group_table(const std::string& path) {
  return is_standard_output(path) || has_text_ending(path);
}

std::vector<std::string> columns_of(const GroupTableSpec& spec) {
  std::vector<std::string> names = spec.keys;
  if (spec.has_responses) names.emplace_back("response");
  names.emplace_back("n");
  names.insert(names.end(), spec.terms.begin(), spec.terms.end());
  for (const std::string& term : spec.terms)
    if (spec.has_se) names.push_back("se_" + term);
  names.insert(names.end(), {"rank", "r2", "condition", "status"});
  return names;
}

std::vector<std::string> statuses_of_groups(const std::string& path) {
  std::vector<std::string> statuses;
  if (is_standard_output(path) || !has_text_ending(path) || !file_exists(path)) return statuses;
  TextLines lines(open_rereadable(path), escape(path));
  const std::string end = fmt::format("{0}rank{0}r2{0}condition{0}status", separator_of(path));
  if (!lines.next() || !lines.text().ends_with(end)) return statuses;
  while (lines.next()) {
    const std::string_view text = lines.text();
    const std::string_view word = text.substr(text.rfind(separator_of(path)) + 1);
    statuses.emplace_back(word == "singular" ? "ok" : word);
  }
  return statuses;
}

GroupTable::GroupTable(GroupTableSpec spec)
    : spec_(std::move(spec)),
      separator_(separator_of(spec_.path)),
      output_(spec_.path, spec_.force) {
  std::string line;
  for (const std::string& name : columns_of(spec_))
    line += (line.empty() ? "" : std::string(1, separator_)) + field_of(name, separator_);
  output_.buffer().append(line + "\n");
}

void GroupTable::add(const GroupRow& row) {
  fmt::memory_buffer& buffer = output_.buffer();
  for (const std::string_view key : row.keys) buffer.append(field_of(key, separator_) + separator_);
  if (spec_.has_responses) buffer.append(field_of(row.response, separator_) + separator_);
  buffer.append(fmt::format("{}", row.rows));
  for (const std::span<const double> numbers : {row.x, row.se})
    for (const double number : numbers) buffer.append(separator_ + number_of(number));
  const std::string rank = row.rank < 0 ? "NaN" : fmt::format("{}", row.rank);
  buffer.append(fmt::format("{0}{1}{0}{2}{0}{3}{0}{4}\n", separator_, rank, number_of(row.r2),
                            number_of(row.condition), row.status));
  output_.flush_if_full();
}

void GroupTable::commit(std::list<RowColumns>& rows) {
  FileSet files;
  for (RowColumns& each : rows) each.finish(files);
  output_.finish(files);
  // Files that another run left beside a table of this name would be read as parts of it.
  if (spec_.force && !is_standard_output(path())) {
    OutputSpec others{
        .path = path(), .force = true, .leading = {}, .datasets = {}, .attributes = {}};
    others.with_report = true;
    for (const std::string& file : find_obsolete(others))
      if (std::ranges::find(rows, file, &RowColumns::path) == rows.end()) files.add_obsolete(file);
    for (const char* ending : {".csv", ".json"}) files.add_obsolete(report_file(path(), ending));
  }
  files.commit();
}

}  // namespace qrtool
