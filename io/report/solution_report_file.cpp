// SPDX-License-Identifier: Apache-2.0
// solution_report_file.cpp: keeps the columns until all are complete, and then writes them as text.
#include "io/report/solution_report_file.hpp"

#include <fmt/compile.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "io/file/atomic_file.hpp"
#include "io/file/scratch_file.hpp"
#include "io/report/report_file.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

SolutionReportFile::SolutionReportFile(const std::string& path, const OutputSpec& spec)
    : output_(path, spec.force), attributes_(attributes_of_report(spec)), threads_(spec.threads) {
  for (const MatrixDataset& dataset : spec.datasets) {
    if (is_fit(dataset.name)) {
      fits_.push_back({dataset.name, {}});
    } else {
      datasets_.push_back({dataset.name, {}});
    }
  }
  for (const NumberDataset& described : spec.numbers) {
    Column column{.described = described, .count = 1};
    for (const index_t extent : described.dims) column.count *= extent;
    if (column.count > 0)
      column.numbers = ScratchFile(directory_of(path),
                                   static_cast<std::uint64_t>(column.count) * sizeof(double));
    columns_.push_back(std::move(column));
  }
}

namespace {

/// Returns the hash of a dataset in a list of hashes by name. Errors: InternalError if there is
/// none.
template <class Hash>
Hash& hash_of(std::vector<std::pair<std::string, Hash>>& all, std::string_view dataset) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == dataset; });
  if (found == all.end())
    throw InternalError(fmt::format("write: there is no dataset {}", dataset));
  return found->second;
}

}  // namespace

template <class T>
void SolutionReportFile::add(std::string_view dataset, BatchView<const T> values) {
  for (index_t b = 0; b < values.count; ++b)
    for (index_t i = 0; i < values.rows; ++i)
      add(dataset,
          std::span(values[b].row_block(i, 1).data, static_cast<std::size_t>(values.cols)));
}

template <class T>
void SolutionReportFile::add(std::string_view dataset, std::span<const T> values) {
  if (is_fit(dataset)) return hash_of(fits_, dataset).add(values, threads_);
  NumberHash& hash = hash_of(datasets_, dataset);
  for (const T value : values) hash.add(static_cast<double>(value));
}

template void SolutionReportFile::add(std::string_view, std::span<const float>);
template void SolutionReportFile::add(std::string_view, std::span<const double>);
template void SolutionReportFile::add(std::string_view, BatchView<const float>);
template void SolutionReportFile::add(std::string_view, BatchView<const double>);

std::uint64_t SolutionReportFile::checksum() const {
  NumberHash of_all;
  for (const auto& [name, hash] : datasets_) of_all.add_word(hash.value());
  for (const auto& [name, hash] : fits_) of_all.add_word(hash.value());
  return of_all.value();
}

void SolutionReportFile::write(std::string_view name, std::span<const double> values) {
  const auto column = std::find_if(columns_.begin(), columns_.end(),
                                   [&](const Column& each) { return each.described.name == name; });
  if (column == columns_.end() || column->written + std::ssize(values) > column->count)
    throw InternalError(fmt::format("write: there is no place in the report for {}", name));
  if (values.empty()) return;
  column->numbers.write(static_cast<std::uint64_t>(column->written) * sizeof(double), values.data(),
                        values.size_bytes());
  column->written += std::ssize(values);
}

double SolutionReportFile::Column::value(index_t i) {
  constexpr index_t at_once = 4096;
  if (i < near_first || i >= near_first + std::ssize(near)) {
    near_first = i;
    near.resize(static_cast<std::size_t>(std::min(at_once, count - i)));
    numbers.read(static_cast<std::uint64_t>(i) * sizeof(double), near.data(),
                 near.size() * sizeof(double));
  }
  return near[static_cast<std::size_t>(i - near_first)];
}

void SolutionReportFile::write_csv() {
  fmt::memory_buffer& buffer = output_.buffer();
  const auto to = std::back_inserter(buffer);
  buffer.append(std::string_view("solution"));
  index_t lines = 0;
  for (const Column& column : columns_) {
    buffer.append(fmt::format(",{}", column.described.name));
    lines = std::max(lines, column.count);
  }
  buffer.append(fmt::format(",{}\n", checksum_column));
  const std::string last_field = fmt::format(",{}\n", checksum_text(checksum()));
  for (index_t i = 0; i < lines; ++i) {
    fmt::format_to(to, FMT_COMPILE("{}"), i);
    for (Column& column : columns_)
      fmt::format_to(to, FMT_COMPILE(",{}"), column.value(i * column.count / lines));
    buffer.append(last_field);
    output_.flush_if_full();
  }
}

namespace {

/// Returns values of a column as JSON, which has no NaN and no infinity. A comma precedes each of
/// them.
std::string json_values(NumberKind kind, std::span<const double> values) {
  std::string text;
  const auto to = std::back_inserter(text);
  for (const double value : values) {
    if (kind != NumberKind::real) {
      fmt::format_to(to, FMT_COMPILE(",{}"),
                     std::isnan(value) ? -1 : static_cast<std::int64_t>(value));
    } else if (std::isfinite(value)) {
      fmt::format_to(to, FMT_COMPILE(",{}"), value);
    } else {
      text += ",null";
    }
  }
  return text;
}

}  // namespace

/// The numbers are turned into text by all threads.
void SolutionReportFile::append_values(Column& column) {
  constexpr index_t of_piece = 8192;
  const index_t wave = of_piece * std::max(threads_, 1);
  for (index_t first = 0; first < column.count; first += wave) {
    std::vector<double> values(static_cast<std::size_t>(std::min(wave, column.count - first)));
    column.numbers.read(static_cast<std::uint64_t>(first) * sizeof(double), values.data(),
                        values.size() * sizeof(double));
    const index_t all = std::ssize(values);
    std::vector<std::string> texts(static_cast<std::size_t>((all + of_piece - 1) / of_piece));
    parallel_for(std::ssize(texts), threads_, [&](index_t i, int) {
      const auto place = static_cast<std::size_t>(i * of_piece);
      const auto count = static_cast<std::size_t>(std::min(of_piece, all - i * of_piece));
      texts[static_cast<std::size_t>(i)] =
          json_values(column.described.kind, std::span(values).subspan(place, count));
    });
    for (const std::string& text : texts) {
      const bool begins = first == 0 && &text == &texts.front();
      output_.buffer().append(std::string_view(text).substr(begins ? 1 : 0));
      output_.flush_if_full();
    }
  }
}

void SolutionReportFile::append_json(Column& column) {
  const NumberDataset& described = column.described;
  fmt::memory_buffer& buffer = output_.buffer();
  nlohmann::ordered_json head{{"description", described.description},
                              {"formula", described.formula},
                              {"unit", described.unit},
                              {"bar_formula", described.bar_formula},
                              {"bar", described.bar}};  // NaN becomes null
  head["shape"] = described.dims;
  const std::string text = head.dump();
  buffer.append(
      fmt::format("\"{}\":{},\"values\":[", described.name, text.substr(0, text.size() - 1)));
  append_values(column);
  buffer.append(std::string_view("]}"));
}

void SolutionReportFile::write_json() {
  fmt::memory_buffer& buffer = output_.buffer();
  Attributes attributes = attributes_;
  attributes.emplace_back(checksum_column, checksum_text(checksum()));
  buffer.append(fmt::format(R"({{"schema":"qrtool.solution-report/1","qrtool":{},)"
                            "\n\"report\":{{\n",
                            to_json(attributes)));
  for (Column& column : columns_) {
    append_json(column);
    buffer.append(std::string_view(&column == &columns_.back() ? "\n}}\n" : ",\n"));
  }
}

void SolutionReportFile::finish(FileSet& files) {
  path().ends_with(".csv") ? write_csv() : write_json();
  output_.finish(files);
}

}  // namespace qrtool
