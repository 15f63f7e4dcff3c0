// SPDX-License-Identifier: Apache-2.0
// writer.cpp: keeps the numbers by columns until a matrix is complete, and then writes them as
// text.
#include "io/mtx/writer.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factor_files.hpp"
#include "io/file/number_hash.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/mtx/reader.hpp"
#include "io/report_file.hpp"
#include "io/solution_report.hpp"

namespace qrtool {
namespace {

// The bytes of rows that are transposed at a time.
constexpr std::size_t block_bytes = std::size_t{1} << 20;
// The bytes of a column that are made text at a time.
constexpr std::size_t piece_bytes = std::size_t{1} << 18;

/// One dataset: its file, and its numbers in the order of columns, in a file without a name beside
/// the output. Rows come in ascending order; some wait in memory until they are worth a write for
/// each column.
class Table {
 public:
  Table(const OutputSpec& spec, const MatrixDataset& described)
      : output(factor_file(spec.path, described.name), spec.force),
        dataset(without_vectors(described)),
        columns_(directory_of(spec.path),
                 static_cast<std::uint64_t>(dataset.rows * dataset.cols) * size_of(dataset.type)) {}

  template <class T>
  void add_rows(index_t first, MatrixView<const T> rows);
  /// The rows are written again, from the first on.
  void restart();
  template <class T>
  void write_text();
  /// Returns the checksum of all numbers, row by row.
  std::uint64_t checksum() const { return hash_.value(); }

  TextOutput output;
  MatrixDataset dataset;

 private:
  template <class T>
  void flush();

  ScratchFile columns_;
  std::vector<std::byte> waiting_;  // rows written_ .. end_ - 1
  index_t written_ = 0, end_ = 0;
  NumberHash hash_;
};

template <class T>
void Table::add_rows(index_t first, MatrixView<const T> rows) {
  if (first != end_ || first + rows.rows > dataset.rows || rows.cols != dataset.cols)
    throw InternalError(fmt::format("write: rows {} of {}, not {}", first, dataset.name, end_));
  const std::size_t row_bytes = static_cast<std::size_t>(rows.cols) * sizeof(T);
  if (row_bytes == 0) return;
  const std::size_t all = row_bytes * static_cast<std::size_t>(dataset.rows);
  waiting_.reserve(std::min(all, block_bytes + row_bytes));
  for (index_t i = 0; i < rows.rows; ++i) {
    const T* const row = rows.data + i * rows.ld;
    for (index_t j = 0; j < rows.cols; ++j) hash_.add(static_cast<double>(row[j]));
    const auto* const bytes = reinterpret_cast<const std::byte*>(row);
    waiting_.insert(waiting_.end(), bytes, bytes + row_bytes);
    ++end_;
    if (waiting_.size() + row_bytes > block_bytes) flush<T>();
  }
}

template <class T>
void Table::flush() {
  const auto* const rows = reinterpret_cast<const T*>(waiting_.data());
  const index_t count = end_ - written_;
  std::vector<T> column(static_cast<std::size_t>(count));
  for (index_t j = 0; j < dataset.cols && count > 0; ++j) {
    for (index_t i = 0; i < count; ++i)
      column[static_cast<std::size_t>(i)] = rows[i * dataset.cols + j];
    columns_.write(static_cast<std::uint64_t>(j * dataset.rows + written_) * sizeof(T),
                   column.data(), column.size() * sizeof(T));
  }
  waiting_.clear();
  written_ = end_;
}

void Table::restart() {
  waiting_.clear();
  written_ = end_ = 0;
  hash_ = {};
}

template <class T>
void Table::write_text() {
  flush<T>();
  fmt::memory_buffer& buffer = output.buffer();
  const auto to = std::back_inserter(buffer);
  fmt::format_to(to, "%%MatrixMarket matrix array {} general\n",
                 dataset.is_whole ? "integer" : "real");
  if (dataset.type == ElementType::float32) fmt::format_to(to, "{}\n", mtx_single_marker);
  fmt::format_to(to, "{} {}\n", dataset.rows, dataset.cols);
  std::vector<T> piece(piece_bytes / sizeof(T));
  const std::uint64_t all = static_cast<std::uint64_t>(dataset.rows * dataset.cols);
  for (std::uint64_t done = 0; done < all; done += piece.size()) {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), all - done);
    columns_.read(done * sizeof(T), piece.data(), count * sizeof(T));
    for (const T number : std::span(piece).first(count)) {
      fmt::format_to(to, FMT_COMPILE("{}\n"), number);
      output.flush_if_full();
    }
  }
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
  void restart(std::string_view dataset, index_t matrix) override {
    table(dataset, matrix).restart();
  }
  void write_report(index_t, std::span<const MatrixReport> report) override {
    lines_.assign(report.begin(), report.end());
  }
  void write_numbers(std::string_view name, index_t, std::span<const double> values) override;
  void add_attribute(const std::string& name, const std::string& value) override {
    if (report_) report_->add_attribute(name, value);
  }
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override;

 private:
  template <class T>
  void keep(std::string_view dataset, index_t first, BatchView<const T> values) {
    if (solution_report_) solution_report_->add(dataset, values);
    for (index_t b = 0; b < values.count; ++b)
      keep_rows(dataset, 0, (first + b) * values.rows, values[b]);
  }
  template <class T>
  void keep_rows(std::string_view dataset, index_t matrix, index_t first_row,
                 MatrixView<const T> rows) {
    table(dataset, matrix).add_rows(first_row, rows);
  }
  Table& table(std::string_view dataset, index_t matrix);

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
  const ReportOfSet set{.attributes = attributes_of_report(spec)};
  if (spec.with_report)
    report_ = create_report_file(report_path_, spec.force, spec.report_columns, &set);
  if (!spec.numbers.empty())
    solution_report_ = std::make_unique<SolutionReport>(report_path_, spec);
}

Table& MtxWriter::table(std::string_view dataset, index_t matrix) {
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [&](const auto& each) { return each->dataset.name == dataset; });
  if (found == tables_.end() || matrix != 0)
    throw InternalError(fmt::format("write: there is no dataset {} {}", dataset, matrix));
  return **found;
}

void MtxWriter::write_numbers(std::string_view name, index_t, std::span<const double> values) {
  if (!solution_report_) throw InternalError("write: there is no report of solutions");
  solution_report_->write(name, values);
}

void MtxWriter::finish(FileSet& files) {
  NumberHash hash;
  for (const auto& table : tables_) {
    const bool is_single = table->dataset.type == ElementType::float32;
    hash.add_word(table->checksum());
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

std::size_t mtx_workspace_bytes(const OutputSpec& spec) {
  // The text is written when no more rows come.
  std::size_t bytes = 2 * TextOutput::full_bytes;
  for (const MatrixDataset& dataset : spec.datasets) {
    const std::size_t row = static_cast<std::size_t>(dataset.cols) * size_of(dataset.type);
    bytes += std::min(block_bytes + row, static_cast<std::size_t>(dataset.rows) * row);
  }
  return bytes;
}

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
