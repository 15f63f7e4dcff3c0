// SPDX-License-Identifier: Apache-2.0
// search.hpp: finding the matrices in an HDF5 file.
#pragma once

#include <string>

#include "io/hdf5/dataset.hpp"

namespace qrtool::hdf5 {

/// The dataset at `path`, or, where `path` is empty, the only one that holds matrices: numbers, two
/// dimensions or more. Errors: InputError, with what there is to choose from; LimitError for sizes
/// that cannot be.
Dataset find_matrices(const InputFile& file, const std::string& path);

}  // namespace qrtool::hdf5
