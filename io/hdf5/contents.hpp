// SPDX-License-Identifier: Apache-2.0
// contents.hpp: what an HDF5 file holds.
#pragma once

#include <string>
#include <vector>

#include "io/report/stored_output.hpp"
#include "io/source/entry.hpp"

namespace qrtool {

/// Implements list_entries() and read_stored_outputs() (io/open/contents.hpp) for HDF5.
std::vector<Entry> list_hdf5_entries(const std::string& file);
std::vector<StoredOutput> read_hdf5_outputs(const std::string& path);

}  // namespace qrtool
