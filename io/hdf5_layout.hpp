// SPDX-License-Identifier: Apache-2.0
// hdf5_layout.hpp: how a dataset of the output is cut into chunks.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.hpp"

namespace qrtool::hdf5 {

struct Layout {
  std::vector<hsize_t> dims, chunk;  // chunk: empty for a dataset without elements
  std::uint64_t file_bytes = 0;      // at most, with checksums and index
};

/// Chunks of whole matrices up to 1 MiB, the fastest leading dimension first; a matrix that is
/// larger is cut by rows, then by columns. Chunks of one dataset are about equal, so that little is
/// lost to the last one. `matrix`: the dimensions after the leading ones (0, 1 or 2).
/// Errors: LimitError where the bytes cannot be counted.
Layout make_layout(std::span<const index_t> leading, std::span<const index_t> matrix,
                   std::size_t element_bytes);

}  // namespace qrtool::hdf5
