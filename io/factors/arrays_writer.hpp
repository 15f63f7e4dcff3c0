// SPDX-License-Identifier: Apache-2.0
// arrays_writer.hpp: a writer that has an object for each dataset.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Passes each write on to the array of its dataset. `Array` has dataset(), and write(),
/// write_rows(), write_part() and restart() as in Writer, without the name of a dataset.
template <class Array>
class ArraysWriter : public Writer {
 public:
  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    array(dataset).write(first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    array(dataset).write(first, values);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const float> rows) override {
    array(dataset).write_rows(matrix, first_row, rows);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const double> rows) override {
    array(dataset).write_rows(matrix, first_row, rows);
  }
  void write_part(std::string_view dataset, index_t first, std::span<const float> values) override {
    array(dataset).write_part(first, values);
  }
  void write_part(std::string_view dataset, index_t first,
                  std::span<const double> values) override {
    array(dataset).write_part(first, values);
  }
  void restart(std::string_view dataset, index_t matrix) override {
    array(dataset).restart(matrix);
  }

 protected:
  Array& array(std::string_view dataset) {
    const auto found = std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& each) {
      return each->dataset().name == dataset;
    });
    if (found == arrays_.end())
      throw InternalError(fmt::format("write: there is no dataset {}", dataset));
    return **found;
  }

  std::vector<std::unique_ptr<Array>> arrays_;
};

}  // namespace qrtool
