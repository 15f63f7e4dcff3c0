// SPDX-License-Identifier: Apache-2.0
// row_collector.hpp: makes whole rows of numbers that come in parts, for formats that write rows.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Collects numbers until they make whole rows. Keeps at most one row.
class RowCollector {
 public:
  /// Adds numbers, the first of which is number `first` of a dataset, and calls use(matrix, first
  /// row, rows) for the rows that they complete.
  template <class T, class Use>
  void add(const MatrixDataset& dataset, index_t first, std::span<const T> values, Use use) {
    const index_t rows = dataset.rows, cols = dataset.cols;
    while (!values.empty()) {
      const index_t row = first / cols, before = first % cols;
      index_t taken = 0;
      if (before == 0 && std::ssize(values) >= cols) {
        const index_t whole = std::min(std::ssize(values) / cols, rows - row % rows);
        use(row / rows, row % rows, MatrixView<const T>{values.data(), whole, cols, cols});
        taken = whole * cols;
      } else {
        taken = std::min<index_t>(std::ssize(values), cols - before);
        part_.insert(part_.end(), values.begin(), values.begin() + taken);
        if (before + taken == cols) {
          const std::vector<T> whole(part_.begin(), part_.end());
          use(row / rows, row % rows, MatrixView<const T>{whole.data(), 1, cols, cols});
          part_.clear();
        }
      }
      first += taken;
      values = values.subspan(static_cast<std::size_t>(taken));
    }
  }

 private:
  std::vector<double> part_;  // of a row that is not complete
};

}  // namespace qrtool
