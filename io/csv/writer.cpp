// SPDX-License-Identifier: Apache-2.0
// writer.cpp: writes matrices as text, one file per dataset, the report last.
#include "io/csv/writer.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/reader.hpp"
#include "io/factor_files.hpp"
#include "io/file/number_hash.hpp"
#include "io/file/text_output.hpp"
#include "io/report_file.hpp"
#include "io/solution_report.hpp"
#include "io/variable_record.hpp"

namespace qrtool {
namespace {

struct Table {
  Table(const std::string& path, bool force, MatrixDataset described)
      : output(path, force), dataset(std::move(described)) {}
  /// A matrix that is written again replaces its checksum.
  void end_matrix(index_t number) {
    if (number == last_complete) checksums.pop_back();
    checksums.push_back(hash.value());
    last_complete = number;
  }
  void forget_checksums() {
    checksums.clear();
    last_complete = -1;
  }

  TextOutput output;
  MatrixDataset dataset;
  index_t count = 1;    // matrices
  index_t matrix = -1;  // the last that was begun, and where its text begins
  std::uint64_t matrix_start = 0;
  NumberHash hash;                       // of the matrix that is being written
  std::vector<std::uint64_t> checksums;  // of complete matrices that the report does not have yet
  index_t last_complete = -1;            // the last matrix that is complete
};

/// Returns comments that say how the input was read, where another reader would not find it out by
/// itself.
std::string dialect_comments(const OutputSpec& spec) {
  std::string comments;
  bool is_plain = true;
  for (const auto& [name, value] : spec.attributes) {
    const std::string* word = std::get_if<std::string>(&value);
    if (word == nullptr || !name.starts_with("csv_")) continue;
    is_plain = is_plain && (name == "csv_delimiter" || name == "csv_header" || *word == "point" ||
                            *word == "no");
    for (std::size_t at = 0; at <= word->size();) {
      const std::size_t end = std::min(word->find('\n', at), word->size());
      comments += fmt::format("{}{} = {}\n", csv_dialect_marker, name.substr(4),
                              escape(word->substr(at, end - at)));
      at = end + 1;
    }
  }
  return is_plain ? "" : comments;
}

/// Returns comments that say how a variable of HDF5 was read.
std::string variable_comments(const OutputSpec& spec) {
  std::string comments;
  for (const auto& [name, value] : spec.attributes) {
    const std::string* word = std::get_if<std::string>(&value);
    if (word != nullptr && (name.starts_with("netcdf_") || name == order_guessed_name))
      comments += fmt::format("{}{} = {}\n", csv_dialect_marker, name, escape(*word));
  }
  return comments;
}

/// Returns comments with what `verify` must know about solutions, where it is not the usual.
std::string solve_comments(const OutputSpec& spec) {
  constexpr std::pair<std::string_view, std::string_view> usual[] = {
      {"response", ""},     {"intercept", "no"},  {"weights", ""}, {"weights_are", "none"},
      {"missing", "error"}, {"least_norm", "no"}, {"ridge", "0"}};
  std::string comments;
  for (const auto& [name, value] : spec.attributes) {
    const std::string* word = std::get_if<std::string>(&value);
    if (word == nullptr) continue;
    const bool is_unusual = std::ranges::any_of(
        usual, [&](const auto& each) { return name == each.first && *word != each.second; });
    const bool is_of_variable = name.starts_with("right_side_netcdf_");
    if (is_unusual || is_of_variable || std::ranges::find(spec.stated, name) != spec.stated.end())
      comments += fmt::format("{}{} = {}\n", csv_solve_marker, name, escape(*word));
  }
  return comments;
}

class CsvWriter final : public Writer {
 public:
  explicit CsvWriter(const OutputSpec& spec);

  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    write_matrices(dataset, first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    write_matrices(dataset, first, values);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const float> rows) override {
    write_some(dataset, matrix, first_row, rows);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const double> rows) override {
    write_some(dataset, matrix, first_row, rows);
  }
  void restart(std::string_view dataset, index_t matrix) override {
    Table& to = table(dataset);
    if (to.matrix == matrix) to.output.go_back(to.matrix_start);
  }
  void write_report(index_t, std::span<const MatrixReport> report) override {
    const std::vector<std::uint64_t> checksums = take_checksums(report.size());
    if (report_) report_->write(report, checksums);
  }
  void write_numbers(std::string_view name, index_t first, std::span<const double> values) override;
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override;

 private:
  Table& table(std::string_view dataset);
  template <class T>
  void write_matrices(std::string_view dataset, index_t first, BatchView<const T> values);
  template <class T>
  void write_some(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const T> rows);
  template <class T>
  void append_row(Table& table, const T* row) const;
  std::vector<std::uint64_t> take_checksums(std::size_t matrices);

  char separator_;
  std::vector<std::string> obsolete_;  // files of another --mode under the same name
  std::vector<std::unique_ptr<Table>> tables_;
  std::string report_path_;
  std::unique_ptr<ReportFile> report_;
  std::unique_ptr<SolutionReport> solution_report_;
};

index_t count_of(const std::vector<index_t>& dims) {
  index_t count = 1;
  for (const index_t extent : dims) count *= extent;
  return count;
}

CsvWriter::CsvWriter(const OutputSpec& spec)
    : separator_(separator_of(spec.path)),
      obsolete_(is_standard_output(spec.path) ? std::vector<std::string>{} : find_obsolete(spec)) {
  for (const MatrixDataset& each : spec.datasets) {
    const MatrixDataset dataset = without_vectors(each);
    const index_t count = count_of(dataset.leading.value_or(spec.leading));
    if (count == 0 || dataset.rows == 0 || dataset.cols == 0) {
      throw OutputError(
          fmt::format("'{}': text cannot hold {} {} matrices of {} x {}", escape(spec.path), count,
                      dataset.name, dataset.rows, dataset.cols),
          "write an HDF5 file: let the name end in .h5");
    }
  }
  for (const MatrixDataset& each : spec.datasets) {
    const MatrixDataset dataset = without_vectors(each);
    const std::string name =
        is_standard_output(spec.path) ? spec.path : csv_name(spec.path, dataset.name);
    tables_.push_back(std::make_unique<Table>(name, spec.force, dataset));
    tables_.back()->count = count_of(dataset.leading.value_or(spec.leading));
    if (dataset.type == ElementType::float32) {
      fmt::format_to(std::back_inserter(tables_.back()->output.buffer()), "{}\n",
                     csv_single_marker);
    }
    if (!dataset.description.empty())
      fmt::format_to(std::back_inserter(tables_.back()->output.buffer()), "# {}\n",
                     dataset.description);
  }
  if (spec.with_report || !spec.numbers.empty())
    tables_.back()->output.buffer().append(dialect_comments(spec) + variable_comments(spec));
  if (!spec.numbers.empty()) tables_.back()->output.buffer().append(solve_comments(spec));
  if (!spec.numbers.empty()) {
    report_path_ = csv_name(spec.path, "report");
    solution_report_ = std::make_unique<SolutionReport>(report_path_, spec);
  }
  if (!spec.with_report || is_standard_output(spec.path)) return;
  report_path_ = csv_name(spec.path, "report");
  const ReportOfSet set{.attributes = spec.attributes};
  report_ = create_report_file(report_path_, spec.force, spec.report_columns, &set);
}

template <class T>
void CsvWriter::append_row(Table& table, const T* row) const {
  fmt::memory_buffer& buffer = table.output.buffer();
  for (index_t j = 0; j < table.dataset.cols; ++j) {
    if (j > 0) buffer.push_back(separator_);
    fmt::format_to(std::back_inserter(buffer), FMT_COMPILE("{}"), row[j]);
    table.hash.add(static_cast<double>(row[j]));
  }
  buffer.push_back('\n');
}

/// Returns the checksums of the next matrices; each covers all datasets of a matrix.
std::vector<std::uint64_t> CsvWriter::take_checksums(std::size_t matrices) {
  std::vector<std::uint64_t> all(matrices);
  for (std::size_t b = 0; b < matrices; ++b) {
    NumberHash hash;
    for (const auto& table : tables_) hash.add_word(table->checksums.at(b));
    all[b] = hash.value();
  }
  for (const auto& table : tables_) {
    table->checksums.erase(table->checksums.begin(),
                           table->checksums.begin() + static_cast<std::ptrdiff_t>(matrices));
  }
  return all;
}

Table& CsvWriter::table(std::string_view dataset) {
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [&](const auto& each) { return each->dataset.name == dataset; });
  if (found == tables_.end())
    throw InternalError(fmt::format("write: there is no dataset {}", dataset));
  return **found;
}

/// Writes rows of one matrix. Row 0 begins the matrix, with a comment that gives its number.
template <class T>
void CsvWriter::write_some(std::string_view dataset, index_t matrix, index_t first_row,
                           MatrixView<const T> rows) {
  Table& to = table(dataset);
  TextOutput& output = to.output;
  if (first_row == 0) {
    to.matrix = matrix;
    to.matrix_start = output.position();
  }
  const index_t all_rows = to.dataset.rows;
  if (first_row == 0) to.hash = {};
  if (to.count > 1 && first_row == 0) {
    fmt::format_to(std::back_inserter(output.buffer()), "{}# matrix {}\n", matrix > 0 ? "\n" : "",
                   matrix);
  }
  // The buffer is flushed row by row, so that it stays small.
  for (index_t i = 0; i < rows.rows; ++i) {
    append_row(to, rows.data + i * rows.ld);
    output.flush_if_full();
  }
  if (first_row + rows.rows == all_rows) to.end_matrix(matrix);
}

template <class T>
void CsvWriter::write_matrices(std::string_view dataset, index_t first, BatchView<const T> values) {
  if (solution_report_) solution_report_->add(dataset, values);
  const index_t pieces = table(dataset).dataset.rows / values.rows;
  for (index_t b = first; b < first + values.count; ++b)
    write_some(dataset, b / pieces, b % pieces * values.rows, values[b - first]);
  // All solutions have one checksum together.
  if (solution_report_) table(dataset).forget_checksums();
}

void CsvWriter::write_numbers(std::string_view name, index_t, std::span<const double> values) {
  if (!solution_report_) throw InternalError("write: there is no report of solutions");
  solution_report_->write(name, values);
}

void CsvWriter::finish(FileSet& files) {
  for (const auto& table : tables_) table->output.finish(files);
  if (report_) report_->finish(files);
  if (solution_report_) solution_report_->finish(files);
  for (const std::string& path : obsolete_) files.add_obsolete(path);
}

std::vector<std::string> CsvWriter::files() const {
  std::vector<std::string> names;
  for (const auto& table : tables_) names.push_back(table->output.path());
  if (report_ || solution_report_) names.push_back(report_path_);
  return names;
}

}  // namespace

char separator_of(const std::string& path) {
  if (is_standard_output(path)) return ',';
  const char kind = path[path.size() - 3];  // .csv, .tsv, .txt
  if (kind == 'c' || kind == 'C') return ',';
  return path.ends_with("sv") || path.ends_with("SV") ? '\t' : ' ';
}

std::string csv_name(const std::string& path, const std::string& dataset) {
  // The report is always CSV, also where the matrices have another separator.
  return dataset == "report" ? report_file(path, ".csv") : factor_file(path, dataset);
}

std::unique_ptr<Writer> create_csv(const OutputSpec& spec) {
  return std::make_unique<CsvWriter>(spec);
}

}  // namespace qrtool
