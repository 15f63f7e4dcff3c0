// SPDX-License-Identifier: Apache-2.0
// factors.hpp: opens factors that are stored in HDF5, and reads what is recorded about them.
#pragma once

#include <string>
#include <vector>

#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {

/// Returns the dataset that holds solutions, /X or /x, or an empty text.
std::string find_hdf5_solutions(const std::string& path);

/// Implements recorded_attributes for HDF5.
std::vector<std::string> read_hdf5_attributes(const std::string& path,
                                              const std::vector<const char*>& names);

/// Implements open_factors (io/open/factors.hpp) for HDF5, without its check of the shapes.
StoredFactors open_hdf5_factors(const std::string& path, Order order, int threads);

/// Implements read_recorded_input for HDF5. Errors: InputError if the file cannot be opened.
RecordedInput read_hdf5_recorded_input(const std::string& path);

/// For an output of several datasets: the record of one of them, and the list of all.
RecordedInput read_hdf5_recorded_input_of(const std::string& path, const std::string& source);
StoredFactors open_hdf5_factors_of(const std::string& path, const std::string& source, Order order,
                                   int threads);
std::vector<std::string> read_hdf5_source_datasets(const std::string& path);

}  // namespace qrtool
