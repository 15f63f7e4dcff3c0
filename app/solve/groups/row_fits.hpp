// SPDX-License-Identifier: Apache-2.0
// row_fits.hpp: residuals, fitted values and leverages of the rows of all groups, in the order of
// the table.
#pragma once

#include <list>
#include <span>
#include <vector>

#include "app/options/options.hpp"
#include "app/solve/groups/keyed_input.hpp"
#include "app/solve/groups/row_numbers.hpp"
#include "io/csv/row_columns.hpp"

namespace qrtool {

/// Computes what is wanted of the rows of a group when its answers are there, and writes all of it
/// at the end. A row whose right side alone is missing has a fitted value, which predicts it; one
/// that is left out has NaN. Errors: OutputError, at once if a file exists and is not replaced.
class RowFits {
 public:
  /// `input` must outlive the object.
  RowFits(const SolveOptions& o, const KeyedInput& input, const Limits& limits);

  bool is_wanted() const { return !columns_.empty(); }
  /// The memory that the numbers take; those that have no room there are in a scratch file.
  std::size_t memory_bytes() const { return numbers_.memory_bytes(); }
  /// Adds some groups with their answers. Returns how many groups have leverages whose error is
  /// above the bar.
  index_t add(std::span<const GroupRows> groups, const GroupAnswers& answers);
  /// Writes the files.
  void finish();
  std::list<RowColumns>& files() { return columns_; }
  std::vector<std::string> paths() const;

 private:
  enum class Kind { residuals, fitted, leverage };
  /// The numbers of the rows of one group, row by row.
  struct Fits {
    std::vector<index_t> rows;
    std::vector<double> numbers;
    bool is_off = false;
  };
  index_t width() const {
    return static_cast<index_t>(kinds_.size()) * input_.system.count_responses();
  }
  Fits fits_of(const GroupRows& rows, const GroupAnswers& answers, index_t first) const;
  void find_leverages(const GroupRows& rows, const GroupLine& line, index_t response,
                      std::span<double> leverages, bool& is_off) const;

  const KeyedInput& input_;
  int threads_;
  std::vector<Kind> kinds_;
  std::list<RowColumns> columns_;  // a file for each kind
  RowNumbers numbers_;
};

}  // namespace qrtool
