// SPDX-License-Identifier: Apache-2.0
// factors.hpp: opens factors that are stored as arrays of NumPy.
#pragma once

#include <string>
#include <vector>

#include "io/reader.hpp"

namespace qrtool::npy {

/// Opens out.Q.npy, out.R.npy, ... for out.npy. Where there is an out.report.json with checksums,
/// the factors must have them. Errors: InputError, also where files of different runs lie beside
/// each other.
StoredFactors open_npy_factors(const std::string& path, int threads);
RecordedInput read_npy_recorded_input(const std::string& path);

/// Opens the members Q, R, V and tau (or q, r, ...) of a .npz. Errors: InputError.
StoredFactors open_npz_factors(const std::string& path, int threads);
RecordedInput read_npz_recorded_input(const std::string& path);
/// Does recorded_attributes (io/reader.hpp) for a .npz.
std::vector<std::string> read_npz_attributes(const std::string& path,
                                             const std::vector<const char*>& names);
/// The member that holds solutions: X or x; empty where there is neither.
std::string find_npz_solutions(const std::string& path);

}  // namespace qrtool::npy
