// SPDX-License-Identifier: Apache-2.0
// factors.hpp: opens factors, and what is recorded beside them, whatever their format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/read/stored_factors.hpp"

namespace qrtool {

/// Returns the record of the input, which is empty if the file cannot be read. `source` is one of
/// recorded_datasets(), or empty.
RecordedInput read_recorded_input(const std::string& factors, const std::string& source = {});

/// Returns the datasets whose factors an output of several datasets holds, as source_dataset
/// records them. Empty for any other file, and for a file that cannot be read.
std::vector<std::string> recorded_datasets(const std::string& factors);

/// Opens the matrices that factors are compared with. `recorded` gives the dataset and the order
/// that `spec` leaves open. Errors: as open_input().
std::unique_ptr<Reader> open_recorded_input(InputSpec spec, const RecordedInput& recorded);

/// Opens /Q, /R, /V and /tau of an HDF5 file (or /q, /r, ...), or out.Q.csv, out.R.csv, ... for
/// out.csv. `order` is the resolved order of the input; an `order` attribute in the file wins over
/// it. At most `threads` threads read at once. `source` is one of recorded_datasets(), or empty.
/// Errors: InputError, also if the file has neither R nor V, or if shapes contradict each other.
StoredFactors open_factors(const std::string& path, Order order, int threads = 1,
                           const std::string& source = {});

/// Returns the named attributes of an output of this tool. A text is empty if its attribute is not
/// recorded; all are if another program wrote the file. CSV records few.
std::vector<std::string> recorded_attributes(const std::string& path,
                                             const std::vector<const char*>& names);

}  // namespace qrtool
