// SPDX-License-Identifier: Apache-2.0
// chunk_cache.hpp: the memory in which HDF5 keeps the chunks that it has decompressed.
#pragma once

#include <cstddef>

#include "io/hdf5/datasets/dataset.hpp"

namespace qrtool::hdf5 {

/// Opens a chunked dataset again with a cache for the chunks that two calls of read in a row share,
/// so that no chunk is decompressed twice for them. The cache uses at most a quarter of
/// `memory_bytes`, but at least 1 MiB. Returns its bytes; 0 for a dataset without chunks.
std::size_t enlarge_cache(const InputFile& file, Dataset& dataset, std::size_t memory_bytes);

}  // namespace qrtool::hdf5
