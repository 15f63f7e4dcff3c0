// SPDX-License-Identifier: Apache-2.0
// row_columns.cpp: a header, and a line for each row.
#include "io/csv/row_columns.hpp"

#include "io/csv/fields.hpp"
#include "io/csv/writer.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

std::string names_of_fits(const std::string& dataset, const std::vector<std::string>& responses,
                          char separator) {
  std::string line;
  for (const std::string& response : responses)
    line += (line.empty() ? "" : std::string(1, separator)) +
            field_of(dataset + "_" + response, separator);
  return line;
}

RowColumns::RowColumns(const std::string& path, const char* dataset,
                       const std::vector<std::string>& responses, bool force)
    : separator_(separator_of(path)), output_(factor_file(path, dataset), force) {
  output_.buffer().append(names_of_fits(dataset, responses, separator_) + "\n");
}

void RowColumns::add(std::span<const double> numbers) {
  for (std::size_t j = 0; j < numbers.size(); ++j) {
    if (j > 0) output_.buffer().push_back(separator_);
    output_.buffer().append(number_of(numbers[j]));
  }
  output_.buffer().push_back('\n');
  output_.flush_if_full();
}

}  // namespace qrtool
