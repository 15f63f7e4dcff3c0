// SPDX-License-Identifier: Apache-2.0
// row_numbers.cpp: the numbers of a row are kept at the place of the row.
#include "app/solve/groups/row_numbers.hpp"

#include <algorithm>

#include "core/report/report.hpp"

namespace qrtool {

RowNumbers::RowNumbers(index_t rows, index_t width, std::size_t most_bytes,
                       const std::string& scratch)
    : rows_(rows), width_(width) {
  const auto count = static_cast<std::size_t>(rows * width);
  if (count * sizeof(double) <= most_bytes) {
    numbers_.assign(count, not_measured);
    return;
  }
  const std::vector<double> nothing(std::size_t{1} << 16, not_measured);
  scratch_ = ScratchFile(scratch.empty() ? default_scratch() : scratch, count * sizeof(double));
  for (std::size_t at = 0; at < count; at += nothing.size())
    scratch_.write(at * sizeof(double), nothing.data(),
                   std::min(nothing.size(), count - at) * sizeof(double));
}

/// Copies the numbers of rows that follow each other in the table together.
void RowNumbers::set(std::span<const index_t> rows, const double* numbers) {
  const auto width = static_cast<std::size_t>(width_);
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    const std::size_t place = static_cast<std::size_t>(rows[first]) * width;
    const double* const from = numbers + first * width;
    if (scratch_)
      scratch_.write(place * sizeof(double), from, (end - first) * width * sizeof(double));
    else
      std::copy_n(from, (end - first) * width, numbers_.data() + place);
    first = end;
  }
}

void RowNumbers::get(index_t first, index_t count, double* to) const {
  const auto at = static_cast<std::size_t>(first * width_);
  const auto all = static_cast<std::size_t>(count * width_);
  if (scratch_)
    scratch_.read(at * sizeof(double), to, all * sizeof(double));
  else
    std::copy_n(numbers_.data() + at, all, to);
}

}  // namespace qrtool
