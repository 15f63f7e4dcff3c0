// SPDX-License-Identifier: Apache-2.0
// factors.hpp: opens factors that are stored as arrays of NumPy.
#pragma once

#include <string>
#include <vector>

#include "io/factors/factor_set.hpp"
#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool::npy {

/// A set of .npy files, with its report as JSON.
extern const FactorCodec npy_codec;

/// Opens the members Q, R, V and tau (or q, r, ...) of a .npz. Errors: InputError.
StoredFactors open_npz_factors(const std::string& path, int threads);
RecordedInput read_npz_recorded_input(const std::string& path);
/// Implements recorded_attributes (io/open/factors.hpp) for a .npz.
std::vector<std::string> read_npz_attributes(const std::string& path,
                                             const std::vector<const char*>& names);
/// Returns the member that holds solutions, X or x, or an empty text.
std::string find_npz_solutions(const std::string& path);

}  // namespace qrtool::npy
