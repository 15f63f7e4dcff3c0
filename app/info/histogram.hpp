// SPDX-License-Identifier: Apache-2.0
// histogram.hpp: counts ratios of errors to their bars in intervals whose ends are a few round
// numbers in every power of ten.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// The histograms of several errors over the same intervals.
struct Histogram {
  struct Column {
    std::string_view name;
    std::vector<index_t> counts;  // one more than edges: below the first, ..., above the last
  };
  std::vector<double> edges;  // rising; empty where there was no number
  std::vector<Column> columns;

  /// Returns interval i in words: "below 0.01", "0.01 to 0.02", "from 1".
  std::string range(std::size_t i) const;
};

/// The ratios of one error to its bars. A ratio that is NaN counts nowhere.
struct Ratios {
  std::string_view name;
  std::vector<double> values;
};
/// Counts in at most 14 intervals that hold all positive ratios. If a ratio is above 1, at which an
/// error fails, 1 is an edge.
Histogram count_ratios(std::span<const Ratios> errors);

/// Returns a table with a line for each interval, and bars of '#'.
std::string to_text(const Histogram& histogram);

}  // namespace qrtool
