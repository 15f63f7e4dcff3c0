// SPDX-License-Identifier: Apache-2.0
// reader.hpp: readers of HDF5 datasets.
#pragma once

#include <memory>
#include <string>

#include "io/reader.hpp"

namespace qrtool {

/// The dataset that `spec` names, or the only one with matrices. `spec.path` is the file alone.
std::unique_ptr<Reader> open_hdf5_input(const InputSpec& spec);

/// As open_factors (io/reader.hpp), which also checks the shapes.
StoredFactors open_hdf5_factors(const std::string& path, Order order, int threads);

}  // namespace qrtool
