// SPDX-License-Identifier: Apache-2.0
// writer.hpp: matrices and a report into a file that is complete or not there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/batch.hpp"
#include "core/problem.hpp"
#include "core/report.hpp"
#include "io/reader.hpp"

namespace qrtool {

/// One dataset of matrices in the output. A vector (tau: rows = 1) loses the dimension of its rows.
struct MatrixDataset {
  std::string name;  // "Q", "R", "V", "tau", "A"
  ElementType type = ElementType::float32;
  index_t rows = 0, cols = 0;
  bool is_vector = false;
};

using AttributeValue = std::variant<std::string, double, std::int64_t>;

struct OutputSpec {
  std::string path;
  bool force = false;            // replace an existing file
  std::vector<index_t> leading;  // batch dimensions, as in the input
  Order order = Order::row;      // column: the last two dimensions are stored reversed
  std::vector<MatrixDataset> datasets;
  bool with_report = false;  // the /report group, or out.report.csv
  std::vector<std::pair<std::string, AttributeValue>> attributes;  // of the root
  int threads = 1;  // that write at once, at the most
};

/// Writes each dataset in ascending order of matrices without a gap, in its own type. One thread at
/// a time. Nothing is to be seen under the output's name before commit(); destroyed without
/// commit() it leaves the disk as it was. Errors: OutputError.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual void write(std::string_view dataset, index_t first, BatchView<const float> values) = 0;
  virtual void write(std::string_view dataset, index_t first, BatchView<const double> values) = 0;
  /// Rows first_row .. first_row + rows.rows - 1 of one matrix, in ascending order without a gap;
  /// not where Order::column stores them one beside the other (takes_rows()).
  virtual void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                          MatrixView<const float> rows) = 0;
  virtual void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                          MatrixView<const double> rows) = 0;
  virtual void write_report(index_t first, std::span<const MatrixReport> report) = 0;

  /// Flush, sync, rename, sync the directory.
  virtual void commit() = 0;

  /// The files that commit() creates, for messages.
  virtual std::vector<std::string> files() const = 0;
};

/// Creates the temporary file and reserves its space. .csv, .tsv and .txt give CSV, all else HDF5.
/// Errors: OutputError where the output exists without `force`, cannot be created, or its space
/// cannot be had, with the bytes needed and free.
std::unique_ptr<Writer> create_output(const OutputSpec& spec);

/// UsageError where `output` (or any file that it implies) is the file that `input` names, also
/// through links.
void refuse_same_file(const std::string& input, const std::string& output);

}  // namespace qrtool
