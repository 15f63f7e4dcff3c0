// SPDX-License-Identifier: Apache-2.0
// row_numbers.hpp: some numbers for every row of a table, which are found in any order of the rows
// and wanted in that of the table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {

/// Stores numbers of rows, NaN at first: in memory, or in a scratch file if they need more than
/// `most_bytes`. Errors: OutputError if the scratch directory has no room.
class RowNumbers {
 public:
  RowNumbers() = default;
  /// `width` numbers for each row; `scratch`: a directory; empty: the temporary one.
  RowNumbers(index_t rows, index_t width, std::size_t most_bytes, const std::string& scratch);

  /// Sets the numbers of these rows, which follow each other in `numbers`.
  void set(std::span<const index_t> rows, const double* numbers);
  /// Calls use(row, numbers) for every row, in the order of the table.
  template <class Use>
  void visit(Use use) const {
    constexpr index_t at_once = 4096;
    std::vector<double> some(static_cast<std::size_t>(std::min(at_once, rows_) * width_));
    for (index_t done = 0; done < rows_; done += at_once) {
      const index_t count = std::min(at_once, rows_ - done);
      get(done, count, some.data());
      for (index_t i = 0; i < count; ++i) use(done + i, some.data() + i * width_);
    }
  }
  std::size_t memory_bytes() const { return numbers_.size() * sizeof(double); }

 private:
  void get(index_t first, index_t count, double* to) const;

  index_t rows_ = 0, width_ = 0;
  std::vector<double> numbers_;  // empty: they are in the scratch file
  ScratchFile scratch_;
};

}  // namespace qrtool
