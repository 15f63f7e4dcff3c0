// SPDX-License-Identifier: Apache-2.0
// contents.hpp: what a .npz holds.
#pragma once

#include <string>
#include <vector>

#include "io/report/stored_output.hpp"
#include "io/source/entry.hpp"

namespace qrtool::npy {

/// Implements list_entries() and read_stored_outputs() (io/open/contents.hpp) for a .npz.
std::vector<Entry> list_npz_entries(const std::string& file);
std::vector<StoredOutput> read_npz_output(const std::string& path);

}  // namespace qrtool::npy
