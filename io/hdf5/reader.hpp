// SPDX-License-Identifier: Apache-2.0
// reader.hpp: reads matrices from HDF5 datasets.
#pragma once

#include <memory>

#include "io/read/reader.hpp"

namespace qrtool {

/// Opens the dataset that `spec` names, or the only one that holds matrices. `spec.path` is the
/// file alone. Errors: InputError, LimitError.
std::unique_ptr<Reader> open_hdf5_input(const InputSpec& spec);

/// Does open_array for HDF5. `spec.path` is the file alone.
std::unique_ptr<Reader> open_hdf5_array(const InputSpec& spec);

}  // namespace qrtool
