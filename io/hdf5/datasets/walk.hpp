// SPDX-License-Identifier: Apache-2.0
// walk.hpp: finds all datasets of a file. HDF5's own walk looks every object up by its path, which
// costs the cube of the depth of nested groups, and never ends where a group holds itself.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "io/hdf5/datasets/dataset.hpp"

namespace qrtool::hdf5 {

/// The objects that hard links from the root group lead to: each dataset once, in the order of the
/// names.
struct Found {
  std::vector<FoundDataset> datasets;
  std::vector<std::string> external_links;  // their paths
};

/// Finds all datasets of a file. Errors: InputError if a group cannot be read; LimitError if the
/// paths have more than 64 MiB.
Found find_all(const InputFile& file);

}  // namespace qrtool::hdf5
