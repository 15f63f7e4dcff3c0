// SPDX-License-Identifier: Apache-2.0
// writer.cpp: writes matrices as text, one file per dataset.
#include "io/csv/writer.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/checksum/number_hash.hpp"
#include "io/csv/comments.hpp"
#include "io/csv/reader.hpp"
#include "io/csv/row_columns.hpp"
#include "io/factors/row_collector.hpp"
#include "io/factors/set_writer.hpp"
#include "io/file/text_output.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

index_t count_of(const std::vector<index_t>& dims) {
  index_t count = 1;
  for (const index_t extent : dims) count *= extent;
  return count;
}

/// Returns the names of the columns of residuals, fitted values and leverages beside a table of
/// coefficients; an empty text for other datasets. Several responses share the leverages.
std::string header_of_fits(const OutputSpec& spec, const MatrixDataset& dataset) {
  const std::vector<std::string>& responses = spec.coefficients->responses;
  if (!is_fit(dataset.name)) return {};
  if (dataset.name == "leverage" && responses.size() > 1) return dataset.name;
  return names_of_fits(dataset.name, responses, separator_of(spec.path));
}

/// The file of one dataset, as SetWriter asks for it.
class CsvFile {
 public:
  CsvFile(const OutputSpec& spec, const MatrixDataset& described);

  const MatrixDataset& dataset() const { return dataset_; }
  const std::string& path() const { return output_.path(); }
  template <class T>
  void write(index_t first, BatchView<const T> values);
  template <class T>
  void write_rows(index_t matrix, index_t first_row, MatrixView<const T> rows);
  template <class T>
  void write_part(index_t first, std::span<const T> values) {
    parts_.add(dataset_, first, values, [&](index_t matrix, index_t row, MatrixView<const T> rows) {
      write_rows(matrix, row, rows);
    });
  }
  void restart(index_t matrix) {
    if (matrix_ == matrix) output_.go_back(matrix_start_);
  }
  Checksums take_checksums(std::size_t matrices) { return take_first(checksums_, matrices); }
  void finish(FileSet& files) { output_.finish(files); }

 private:
  template <class T>
  void append_row(const T* row);
  template <class T>
  void append_complex(T re, T im);
  void end_matrix(index_t number);

  TextOutput output_;
  MatrixDataset dataset_;  // of real numbers, of which a complex one has two
  index_t entry_numbers_;
  ComplexForm form_;
  char separator_;
  bool has_checksums_;
  index_t count_;        // matrices
  index_t matrix_ = -1;  // the last that was begun, and where its text begins
  std::uint64_t matrix_start_ = 0;
  NumberHash hash_;             // of the matrix that is being written
  Checksums checksums_;         // of complete matrices that the report does not have yet
  index_t last_complete_ = -1;  // the last matrix that is complete
  RowCollector parts_;
};

CsvFile::CsvFile(const OutputSpec& spec, const MatrixDataset& described)
    : output_(factor_file(spec.path, described.name), spec.force),
      dataset_(in_real_numbers(without_vectors(described))),
      entry_numbers_(parts_in(described.type)),
      form_(spec.complex_form),
      separator_(separator_of(spec.path)),
      has_checksums_(has_checksums(spec) && !is_fit(described.name)),
      count_(count_of(dataset_.leading.value_or(spec.leading))) {
  fmt::memory_buffer& buffer = output_.buffer();
  if (dataset_.type == ElementType::float32) buffer.append(fmt::format("{}\n", csv_single_marker));
  const std::string header = spec.coefficients ? header_of_fits(spec, described) : std::string();
  if (!header.empty())
    buffer.append(header + "\n");
  else if (!dataset_.description.empty())
    buffer.append(fmt::format("# {}\n", dataset_.description));
  if (&described == &spec.datasets.back()) buffer.append(csv_comments(spec));
}

template <class T>
void CsvFile::append_row(const T* row) {
  fmt::memory_buffer& buffer = output_.buffer();
  for (index_t j = 0; j < dataset_.cols; j += entry_numbers_) {
    if (j > 0) buffer.push_back(separator_);
    if (entry_numbers_ == 2)
      append_complex(row[j], row[j + 1]);
    else
      fmt::format_to(std::back_inserter(buffer), FMT_COMPILE("{}"), row[j]);
  }
  for (index_t j = 0; j < dataset_.cols; ++j) hash_.add(static_cast<double>(row[j]));
  buffer.push_back('\n');
}

template <class T>
void CsvFile::append_complex(T re, T im) {
  fmt::memory_buffer& buffer = output_.buffer();
  if (form_.has_parentheses) buffer.push_back('(');
  fmt::format_to(std::back_inserter(buffer), FMT_COMPILE("{}{:+}{}"), re, im, form_.unit);
  if (form_.has_parentheses) buffer.push_back(')');
}

/// A matrix that is written again replaces its checksum.
void CsvFile::end_matrix(index_t number) {
  if (!has_checksums_) return;
  if (number == last_complete_) checksums_.pop_back();
  checksums_.push_back(hash_.value());
  last_complete_ = number;
}

/// Writes rows of one matrix. Row 0 begins the matrix, with a comment that gives its number.
template <class T>
void CsvFile::write_rows(index_t matrix, index_t first_row, MatrixView<const T> rows) {
  if (first_row == 0) {
    matrix_ = matrix;
    matrix_start_ = output_.position();
    hash_ = {};
  }
  if (count_ > 1 && first_row == 0) {
    output_.buffer().append(fmt::format("{}# matrix {}\n", matrix > 0 ? "\n" : "", matrix));
  }
  // The buffer is flushed after each row, so that it stays small.
  for (index_t i = 0; i < rows.rows; ++i) {
    append_row(rows.data + i * rows.ld);
    output_.flush_if_full();
  }
  if (first_row + rows.rows == dataset_.rows) end_matrix(matrix);
}

template <class T>
void CsvFile::write(index_t first, BatchView<const T> values) {
  const index_t pieces = dataset_.rows / values.rows;
  for (index_t b = first; b < first + values.count; ++b)
    write_rows(b / pieces, b % pieces * values.rows, values[b - first]);
}

/// Refuses matrices without entries. Errors: OutputError.
void refuse_empty_matrices(const OutputSpec& spec) {
  for (const MatrixDataset& each : spec.datasets) {
    const MatrixDataset dataset = without_vectors(each);
    const index_t count = count_of(dataset.leading.value_or(spec.leading));
    if (count > 0 && dataset.rows > 0 && dataset.cols > 0) continue;
    throw OutputError(
        fmt::format("'{}': text cannot hold {} {} matrices of {} x {}", escape(spec.path), count,
                    dataset.name, dataset.rows, dataset.cols),
        "write an HDF5 file: let the name end in .h5");
  }
}

}  // namespace

constinit const FactorCodec csv_codec{
    .report_ending = ".csv",
    .open = [](const std::string& file, bool, int) { return open_csv_factor(file); },
    .join = join_number_hashes,
};

char separator_of(const std::string& path) {
  if (is_standard_output(path)) return ',';
  const char kind = path[path.size() - 3];  // .csv, .tsv, .txt
  if (kind == 'c' || kind == 'C') return ',';
  return path.ends_with("sv") || path.ends_with("SV") ? '\t' : ' ';
}

std::unique_ptr<Writer> create_csv(const OutputSpec& spec) {
  refuse_empty_matrices(spec);
  return std::make_unique<SetWriter<CsvFile>>(spec, csv_codec);
}

}  // namespace qrtool
