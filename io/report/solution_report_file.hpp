// SPDX-License-Identifier: Apache-2.0
// solution_report_file.hpp: writes the numbers about solutions to a file of their own, for formats
// that hold nothing but matrices.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "io/checksum/number_hash.hpp"
#include "io/file/file_set.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// The report of solutions as CSV or JSON. CSV has a header line and one line per right side;
/// values of a matrix are repeated for its right sides. JSON is {"schema":
/// "qrtool.solution-report/1", "qrtool": the attributes, "report": {NAME: {description, ..., shape,
/// values}}}, with null for NaN. The checksum of the datasets is an attribute in JSON, and a column
/// with one repeated value in CSV. The numbers are kept in files without a name beside the report.
/// Errors: OutputError.
class SolutionReportFile {
 public:
  /// The name ends in .csv or .json. The numbers, the attributes and `force` of `spec` are used.
  SolutionReportFile(const std::string& path, const OutputSpec& spec);

  /// Adds numbers of a dataset of solutions to its checksum, in the order of its file. The checksum
  /// binds the files of a run together.
  template <class T>
  void add(std::string_view dataset, BatchView<const T> values);

  /// Adds the next numbers of a dataset of the fit, which are many.
  template <class T>
  void add(std::string_view dataset, std::span<const T> values);

  /// Writes the next numbers of a NumberDataset.
  void write(std::string_view name, std::span<const double> values);
  /// Writes the text and adds the file to `files`, which are committed together.
  void finish(FileSet& files);
  const std::string& path() const { return output_.path(); }

 private:
  struct Column {
    NumberDataset described;
    index_t count = 0, written = 0;
    ScratchFile numbers = {};
    std::vector<double> near = {};  // some that were read, from near_first on
    index_t near_first = 0;

    double value(index_t i);
  };
  void write_csv();
  void write_json();
  void append_json(Column& column);
  void append_values(Column& column);

  std::uint64_t checksum() const;

  TextOutput output_;
  std::vector<Column> columns_;
  Attributes attributes_;
  int threads_;
  // The hash of each dataset so far: first solutions, then fits.
  std::vector<std::pair<std::string, NumberHash>> datasets_;
  std::vector<std::pair<std::string, BlockHash>> fits_;
};

}  // namespace qrtool
