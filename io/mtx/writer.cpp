// SPDX-License-Identifier: Apache-2.0
// writer.cpp: keeps the numbers until a matrix is complete, and then writes them column by column.
#include "io/mtx/writer.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factor_files.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/mtx/reader.hpp"
#include "io/number_hash.hpp"
#include "io/report_file.hpp"
#include "io/solution_report.hpp"

namespace qrtool {
namespace {

/// One dataset: its file, and its numbers in the order of rows. They are in a file without a name
/// beside the output, which the system writes to where memory is scarce.
struct Table {
  Table(const OutputSpec& spec, const MatrixDataset& described)
      : output(factor_file(spec.path, described.name), spec.force),
        dataset(without_vectors(described)),
        numbers(map_scratch(
            directory_of(spec.path),
            static_cast<std::size_t>(dataset.rows * dataset.cols) * size_of(dataset.type))) {}

  template <class T>
  T* row(index_t i) const {
    return reinterpret_cast<T*>(numbers.get()) + i * dataset.cols;
  }
  template <class T>
  void write_text();
  /// Of all numbers, row by row.
  template <class T>
  std::uint64_t checksum() const;

  TextOutput output;
  MatrixDataset dataset;
  HostMemory numbers;
};

template <class T>
void Table::write_text() {
  fmt::memory_buffer& buffer = output.buffer();
  const auto to = std::back_inserter(buffer);
  fmt::format_to(to, "%%MatrixMarket matrix array {} general\n",
                 dataset.is_whole ? "integer" : "real");
  if (dataset.type == ElementType::float32) fmt::format_to(to, "{}\n", mtx_single_marker);
  fmt::format_to(to, "{} {}\n", dataset.rows, dataset.cols);
  // Some columns at a time, so that each piece of a row is used when it is read.
  constexpr index_t step = 16;
  std::vector<T> columns(static_cast<std::size_t>(step * dataset.rows));
  for (index_t j0 = 0; j0 < dataset.cols; j0 += step) {
    const index_t count = std::min(step, dataset.cols - j0);
    for (index_t i = 0; i < dataset.rows; ++i)
      for (index_t j = 0; j < count; ++j)
        columns[static_cast<std::size_t>(j * dataset.rows + i)] = row<T>(i)[j0 + j];
    for (index_t at = 0; at < count * dataset.rows; ++at) {
      fmt::format_to(to, FMT_COMPILE("{}\n"), columns[static_cast<std::size_t>(at)]);
      output.flush_if_full();
    }
  }
}

template <class T>
std::uint64_t Table::checksum() const {
  NumberHash hash;
  for (index_t i = 0; i < dataset.rows; ++i)
    for (index_t j = 0; j < dataset.cols; ++j) hash.add(static_cast<double>(row<T>(i)[j]));
  return hash.value();
}

class MtxWriter final : public Writer {
 public:
  explicit MtxWriter(const OutputSpec& spec);

  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    keep(dataset, first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    keep(dataset, first, values);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const float> rows) override {
    keep_rows(dataset, matrix, first_row, rows);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const double> rows) override {
    keep_rows(dataset, matrix, first_row, rows);
  }
  /// The rows that are written again replace the old ones.
  void restart(std::string_view, index_t) override {}
  void write_report(index_t, std::span<const MatrixReport> report) override {
    lines_.assign(report.begin(), report.end());
  }
  void write_numbers(std::string_view name, index_t, std::span<const double> values) override;
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override;

 private:
  template <class T>
  void keep(std::string_view dataset, index_t first, BatchView<const T> values) {
    for (index_t b = 0; b < values.count; ++b)
      keep_rows(dataset, 0, (first + b) * values.rows, values[b]);
  }
  template <class T>
  void keep_rows(std::string_view dataset, index_t matrix, index_t first_row,
                 MatrixView<const T> rows);

  std::vector<std::string> obsolete_;  // files of another --mode under the same name
  std::vector<std::unique_ptr<Table>> tables_;
  std::string report_path_;
  std::vector<MatrixReport> lines_;  // one, of the report
  std::unique_ptr<ReportFile> report_;
  std::unique_ptr<SolutionReport> solution_report_;
};

MtxWriter::MtxWriter(const OutputSpec& spec) : obsolete_(find_obsolete(spec)) {
  for (const MatrixDataset& dataset : spec.datasets)
    tables_.push_back(std::make_unique<Table>(spec, dataset));
  if (!spec.with_report && spec.numbers.empty()) return;
  report_path_ = report_file(spec.path, ".json");
  const ReportOfSet set{.attributes = spec.attributes};
  if (spec.with_report)
    report_ = create_report_file(report_path_, spec.force, spec.report_columns, &set);
  if (!spec.numbers.empty())
    solution_report_ = std::make_unique<SolutionReport>(report_path_, spec);
}

template <class T>
void MtxWriter::keep_rows(std::string_view dataset, index_t matrix, index_t first_row,
                          MatrixView<const T> rows) {
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [&](const auto& each) { return each->dataset.name == dataset; });
  if (found == tables_.end() || matrix != 0 || first_row + rows.rows > (*found)->dataset.rows)
    throw InternalError(fmt::format("write: there is no dataset {} {}", dataset, matrix));
  for (index_t i = 0; i < rows.rows; ++i)
    std::copy_n(rows.data + i * rows.ld, rows.cols, (*found)->template row<T>(first_row + i));
}

void MtxWriter::write_numbers(std::string_view name, index_t, std::span<const double> values) {
  if (!solution_report_) throw InternalError("write: there is no report of solutions");
  solution_report_->write(name, values);
}

void MtxWriter::finish(FileSet& files) {
  NumberHash hash;
  for (const auto& table : tables_) {
    const bool is_single = table->dataset.type == ElementType::float32;
    hash.add_word(is_single ? table->checksum<float>() : table->checksum<double>());
    is_single ? table->write_text<float>() : table->write_text<double>();
    table->output.finish(files);
  }
  if (report_) {
    report_->write(lines_, std::vector(lines_.size(), hash.value()));
    report_->finish(files);
  }
  if (solution_report_) solution_report_->finish(files);
  for (const std::string& path : obsolete_) files.add_obsolete(path);
}

std::vector<std::string> MtxWriter::files() const {
  std::vector<std::string> names;
  for (const auto& table : tables_) names.push_back(table->output.path());
  if (report_ || solution_report_) names.push_back(report_path_);
  return names;
}

}  // namespace

std::unique_ptr<Writer> create_mtx(const OutputSpec& spec) {
  for (const MatrixDataset& dataset : spec.datasets) {
    index_t count = 1;
    for (const index_t extent : without_vectors(dataset).leading.value_or(spec.leading))
      count *= extent;
    if (count != 1)
      throw UsageError(fmt::format("'{}': a Matrix Market file holds one matrix, not {}",
                                   escape(spec.path), count),
                       "write HDF5 or CSV: let the name end in .h5 or .csv");
  }
  return std::make_unique<MtxWriter>(spec);
}

}  // namespace qrtool
