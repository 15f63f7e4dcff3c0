// SPDX-License-Identifier: Apache-2.0
// contents.hpp: what a .npz holds.
#pragma once

#include <string>
#include <vector>

#include "io/entry.hpp"
#include "io/stored_output.hpp"

namespace qrtool::npy {

/// Do list_entries() and read_stored_outputs() (io/contents.hpp) for a .npz.
std::vector<Entry> list_npz_entries(const std::string& file);
std::vector<StoredOutput> read_npz_output(const std::string& path);

}  // namespace qrtool::npy
