// SPDX-License-Identifier: Apache-2.0
// solutions.hpp: opens solutions, and what was written beside them, whatever their format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/read/reader.hpp"

namespace qrtool {

/// Returns the solutions X that this tool or another program has stored: X or x, or the only
/// dataset of an HDF5 file or a .npz; out.X.csv for out.csv (also .npy, .mtx), or the file itself.
std::unique_ptr<Reader> open_solutions(const std::string& path, int threads = 1,
                                       std::size_t memory_bytes = SIZE_MAX);
/// Opens the dataset `name` that a run of `solve` of this tool wrote beside X. Returns null if
/// there is none.
std::unique_ptr<Reader> open_beside_solutions(const std::string& path, const std::string& name,
                                              int threads = 1, std::size_t memory_bytes = SIZE_MAX);

}  // namespace qrtool
