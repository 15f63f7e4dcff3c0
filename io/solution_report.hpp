// SPDX-License-Identifier: Apache-2.0
// solution_report.hpp: writes the numbers about solutions to a file of their own, for formats that
// hold nothing but matrices.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "io/file/file_set.hpp"
#include "io/file/text_output.hpp"
#include "io/writer.hpp"

namespace qrtool {

/// The report of solutions as CSV or JSON. CSV has a header line and one line for each right side;
/// what belongs to a matrix is repeated for its right sides. JSON is {"schema":
/// "qrtool.solution-report/1", "qrtool": the attributes, "report": {NAME: {description, ..., shape,
/// values}}}, with null for NaN. The numbers are kept in files without a name beside the report.
/// Errors: OutputError.
class SolutionReport {
 public:
  /// The name ends in .csv or .json. Of `spec` it takes numbers, attributes and force.
  SolutionReport(const std::string& path, const OutputSpec& spec);

  /// The next numbers of a NumberDataset.
  void write(std::string_view name, std::span<const double> values);
  /// Writes the text and adds the file to `files`, which are committed together.
  void finish(FileSet& files);
  const std::string& path() const { return output_.path(); }

 private:
  struct Column {
    NumberDataset described;
    index_t count = 0, written = 0;
    HostMemory numbers = {};

    std::span<double> values() const {
      return {reinterpret_cast<double*>(numbers.get()), static_cast<std::size_t>(count)};
    }
  };
  void write_csv();
  void write_json();
  void append_json(const Column& column);

  TextOutput output_;
  std::vector<Column> columns_;
  std::string attributes_;  // as JSON
};

}  // namespace qrtool
