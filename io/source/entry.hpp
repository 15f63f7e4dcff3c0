// SPDX-License-Identifier: Apache-2.0
// entry.hpp: a dataset in the list of those that a file holds.
#pragma once

#include <string>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// A dataset of a file, for a list of its datasets.
struct Entry {
  std::string name;                // that chooses it, as in FILE:NAME
  std::vector<index_t> dims = {};  // as stored
  std::string stored_type = {};    // empty where it holds no numbers
  std::string problem = {};        // why it cannot be read as matrices; empty
  bool is_coordinates = false;     // of netCDF; it is read only where there is nothing else
};

}  // namespace qrtool
