// SPDX-License-Identifier: Apache-2.0
// dimension.hpp: a dimension of netCDF, and the numbers of its coordinates.
#pragma once

#include <string>
#include <vector>

#include "core/batch.hpp"
#include "io/source/csv_options.hpp"

namespace qrtool {

/// A dimension of an input with a name, or one that an output is to have.
struct Dimension {
  std::string name = {};  // empty: it has none
  index_t extent = 0;
  std::vector<double> coordinates = {};  // one for each index; empty: none are known
  std::vector<std::string> labels = {};  // in place of numbers, where an output has them
  TextPairs attributes = {};             // of the coordinates: units, calendar, long_name
};

}  // namespace qrtool
