// SPDX-License-Identifier: Apache-2.0
// solution_report.cpp: keeps the columns until all are complete, and then writes them as text.
#include "io/solution_report.hpp"

#include <fmt/compile.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/file/atomic_file.hpp"
#include "io/file/scratch_file.hpp"
#include "io/report_file.hpp"

namespace qrtool {

SolutionReport::SolutionReport(const std::string& path, const OutputSpec& spec)
    : output_(path, spec.force), attributes_(to_json(spec.attributes)) {
  for (const NumberDataset& described : spec.numbers) {
    Column column{.described = described, .count = 1};
    for (const index_t extent : described.dims) column.count *= extent;
    if (column.count > 0)
      column.numbers =
          map_scratch(directory_of(path), static_cast<std::size_t>(column.count) * sizeof(double));
    columns_.push_back(std::move(column));
  }
}

void SolutionReport::write(std::string_view name, std::span<const double> values) {
  const auto column = std::find_if(columns_.begin(), columns_.end(),
                                   [&](const Column& each) { return each.described.name == name; });
  if (column == columns_.end() || column->written + std::ssize(values) > column->count)
    throw InternalError(fmt::format("write: there is no place in the report for {}", name));
  std::copy(values.begin(), values.end(), column->values().begin() + column->written);
  column->written += std::ssize(values);
}

void SolutionReport::write_csv() {
  fmt::memory_buffer& buffer = output_.buffer();
  const auto to = std::back_inserter(buffer);
  fmt::format_to(to, "solution");
  index_t lines = 0;
  for (const Column& column : columns_) {
    fmt::format_to(to, ",{}", column.described.name);
    lines = std::max(lines, column.count);
  }
  buffer.push_back('\n');
  for (index_t i = 0; i < lines; ++i) {
    fmt::format_to(to, FMT_COMPILE("{}"), i);
    for (const Column& column : columns_)
      fmt::format_to(to, FMT_COMPILE(",{}"),
                     column.values()[static_cast<std::size_t>(i * column.count / lines)]);
    buffer.push_back('\n');
    output_.flush_if_full();
  }
}

void SolutionReport::append_json(const Column& column) {
  using Kind = NumberDataset::Kind;
  const NumberDataset& described = column.described;
  const auto to = std::back_inserter(output_.buffer());
  nlohmann::ordered_json head{{"description", described.description},
                              {"formula", described.formula},
                              {"unit", described.unit},
                              {"bar_formula", described.bar_formula},
                              {"bar", described.bar}};  // NaN becomes null
  head["shape"] = described.dims;
  const std::string text = head.dump();
  fmt::format_to(to, "\"{}\":{},\"values\":[", described.name, text.substr(0, text.size() - 1));
  std::string_view separator = "";
  for (const double value : column.values()) {
    if (described.kind != Kind::real) {
      fmt::format_to(to, FMT_COMPILE("{}{}"), separator,
                     std::isnan(value) ? -1 : static_cast<std::int64_t>(value));
    } else if (std::isfinite(value)) {
      fmt::format_to(to, FMT_COMPILE("{}{}"), separator, value);
    } else {
      fmt::format_to(to, FMT_COMPILE("{}null"), separator);  // JSON has no NaN and no infinity
    }
    separator = ",";
    output_.flush_if_full();
  }
  fmt::format_to(to, "]}}");
}

void SolutionReport::write_json() {
  fmt::memory_buffer& buffer = output_.buffer();
  fmt::format_to(std::back_inserter(buffer),
                 R"({{"schema":"qrtool.solution-report/1","qrtool":{},)"
                 "\n\"report\":{{\n",
                 attributes_);
  for (const Column& column : columns_) {
    append_json(column);
    buffer.append(std::string_view(&column == &columns_.back() ? "\n}}\n" : ",\n"));
  }
}

void SolutionReport::finish(FileSet& files) {
  path().ends_with(".csv") ? write_csv() : write_json();
  output_.finish(files);
}

}  // namespace qrtool
