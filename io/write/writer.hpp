// SPDX-License-Identifier: Apache-2.0
// writer.hpp: writes matrices and a report to a file that appears complete or not at all.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/batch.hpp"
#include "core/problem/problem.hpp"
#include "core/report/report.hpp"
#include "core/report/report_columns.hpp"
#include "io/file/file_set.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// One dataset of matrices in the output. A vector (tau, rows = 1) is stored without the dimension
/// of rows.
struct MatrixDataset {
  std::string name;  // "Q", "R", "P", "V", "tau", "A"
  ElementType type = ElementType::float32;
  index_t rows = 0, cols = 0;
  bool is_vector = false;
  /// Batch dimensions of this dataset alone; not given: the dimensions of the output.
  std::optional<std::vector<index_t>> leading = {};
  bool is_whole = false;                     // indices from 0, given as float64 and stored as int32
  std::string description = {};              // of what it is not clear from the name
  std::vector<std::string> dimensions = {};  // names of OutputSpec::dimensions; empty: none
  std::size_t stored_bytes() const { return is_whole ? 4 : size_of(type); }
};

/// Returns the dataset of the real and imaginary parts of a complex one, or a real dataset
/// unchanged.
inline MatrixDataset in_real_numbers(MatrixDataset dataset) {
  dataset.cols *= parts_in(dataset.type);
  dataset.type = real_of(dataset.type);
  return dataset;
}

/// Returns the dataset of an array of these dimensions. The last two are a matrix, unless there is
/// one, or `are_vectors` says that the last one is a vector.
MatrixDataset array_dataset(std::string name, ElementType type, std::vector<index_t> dims,
                            bool are_vectors = false);

/// Returns the dataset for text, which has rows but no arrays of one dimension. Vectors with
/// leading dimensions of their own become rows of matrices; other datasets are unchanged.
MatrixDataset without_vectors(MatrixDataset dataset);

/// One dataset of numbers in /report that is not a part of MatrixReport, or one column of
/// out.report.csv. The texts are for people, as in ReportColumn.
struct NumberDataset {
  using Kind = NumberKind;

  std::string name;
  Kind kind = Kind::real;
  std::vector<index_t> dims;
  std::vector<std::string> dimensions = {};  // as of MatrixDataset
  std::string description = {}, formula = {}, unit = "1", bar_formula = "none";
  double bar = not_measured;  // the largest value that passes; NaN: none
};

/// The table of coefficients, one file of text: a header, and a line per coefficient with its term,
/// x and the statistics that follow from `se`. With several responses the first column names them.
struct CoefficientTable {
  std::vector<std::string> terms;      // n: the columns of A
  std::vector<std::string> responses;  // p names, those of B's columns
  double confidence = 0;               // of the limits; 0: none
};

using AttributeValue = std::variant<std::string, double, std::int64_t, std::vector<std::string>>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

struct OutputSpec {
  std::string path;
  std::string name = {};         // only for OutputFile::add(): its datasets are Q/NAME, ...
  bool force = false;            // replace an existing file
  std::vector<index_t> leading;  // batch dimensions, the same as in the input
  Order order = Order::row;      // `column` stores the last two dimensions reversed
  std::vector<MatrixDataset> datasets;
  ComplexForm complex_form = {};            // of complex datasets
  bool with_report = false;                 // the /report group, or out.report.csv
  std::vector<NumberDataset> numbers = {};  // in its place, of solutions
  /// Set if X (terms x responses) and se are coefficients of a table. Only text uses it.
  std::optional<CoefficientTable> coefficients = {};
  /// The descriptions of the datasets of the report, if there is one. Text has no place for them.
  std::vector<ReportColumn> report_columns = {};
  /// The names of dimensions, for the datasets. `leading_dimensions` has the names of leading ones.
  std::vector<Dimension> dimensions = {};
  std::vector<std::string> leading_dimensions = {};
  Attributes attributes;                 // of the root
  std::vector<std::string> stated = {};  // names of options that the command line gave
  int threads = 1;                       // the most that write at once
};

/// Writes datasets. Complex matrices come as their real and imaginary parts in turn, in rows of
/// twice as many real numbers (interleaved()). The matrices of a dataset must come in ascending
/// order, without gaps, in the dataset's type, and from one thread at a time. There is no file
/// under the output's name before commit(), and a writer that is destroyed without commit() leaves
/// the disk as it was. Errors: OutputError.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual void write(std::string_view dataset, index_t first, BatchView<const float> values) = 0;
  virtual void write(std::string_view dataset, index_t first, BatchView<const double> values) = 0;
  /// Writes rows first_row .. first_row + rows.rows - 1 of one matrix, in ascending order without
  /// gaps. Not for Order::column in HDF5.
  virtual void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                          MatrixView<const float> rows) = 0;
  virtual void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                          MatrixView<const double> rows) = 0;
  /// Writes numbers of a dataset in its order, from number `first` on: parts of rows, rows or
  /// matrices, in ascending order without gaps. A dataset of the fit (residuals, fitted,
  /// leverage) is written in this way alone.
  virtual void write_part(std::string_view dataset, index_t first,
                          std::span<const float> values) = 0;
  virtual void write_part(std::string_view dataset, index_t first,
                          std::span<const double> values) = 0;
  /// Goes back to row 0 of a matrix, of which write_rows() has written some or all rows and after
  /// which nothing was written. Its rows will be written again.
  virtual void restart(std::string_view dataset, index_t matrix) = 0;
  virtual void write_report(index_t first, std::span<const MatrixReport> report) = 0;
  /// Writes numbers first .. first + values.size() - 1 of a NumberDataset, in ascending order. NaN
  /// becomes -1 in a dataset of whole numbers.
  virtual void write_numbers(std::string_view name, index_t first, std::span<const double> values);

  /// Writes the rest, closes the files and adds them to `files`, which are committed together.
  virtual void finish(FileSet& files) = 0;
  /// finish(), and the commit of the writer's own files.
  void commit();

  /// Returns the files that commit() creates, for messages.
  virtual std::vector<std::string> files() const = 0;

  /// Adds an attribute of the root that was not known before. Text has no place for it.
  virtual void add_attribute(const std::string& /*name*/, const AttributeValue& /*value*/) {}
};

/// One file for the factors of several datasets, which are written one after another.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  /// Returns the writer of one dataset, which writes Q/NAME, R/NAME, ... and report/NAME with the
  /// attributes. Its finish() adds no file. A writer that is destroyed without finish() removes its
  /// datasets from the file.
  virtual std::unique_ptr<Writer> add(const OutputSpec& spec) = 0;
  /// Closes the file, which records the datasets that it holds by the names `sources`.
  virtual void finish(std::span<const std::string> sources, FileSet& files) = 0;
};

}  // namespace qrtool
