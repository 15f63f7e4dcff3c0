// SPDX-License-Identifier: Apache-2.0
// search.hpp: finds the matrices in an HDF5 file.
#pragma once

#include <string>
#include <vector>

#include "io/hdf5/datasets/dataset.hpp"

namespace qrtool::hdf5 {

/// Returns the dataset at `path` or, if `path` is empty, the only dataset of matrices, which are
/// numbers with two dimensions or more. Errors: InputError, whose message lists the datasets to
/// choose from; LimitError for impossible sizes.
Dataset find_matrices(const InputFile& file, const std::string& path);

/// Finds a dataset of numbers with one dimension or more.
Dataset find_array(const InputFile& file, const std::string& path);

/// Returns all datasets that hard links lead to. A dataset that holds no matrices, or is damaged,
/// has a `problem`. Errors: InputError where the groups cannot be read.
std::vector<Dataset> list_datasets(const InputFile& file);

}  // namespace qrtool::hdf5
