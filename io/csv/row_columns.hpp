// SPDX-License-Identifier: Apache-2.0
// row_columns.hpp: numbers for each row of a table, beside the table of its groups:
// out.residuals.csv beside out.csv, with a column residuals_y for the response y.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/file/text_output.hpp"

namespace qrtool {

/// Returns the names of the columns: "fitted_y" for the dataset fitted and the response y, and
/// numbers instead of responses that have no name.
std::string names_of_fits(const std::string& dataset, const std::vector<std::string>& responses,
                          char separator);

class RowColumns {
 public:
  /// `path`: that of the table. Errors: OutputError.
  RowColumns(const std::string& path, const char* dataset,
             const std::vector<std::string>& responses, bool force);
  void add(std::span<const double> numbers);
  void finish(FileSet& files) { output_.finish(files); }
  const std::string& path() const { return output_.path(); }

 private:
  char separator_;
  TextOutput output_;
};

}  // namespace qrtool
