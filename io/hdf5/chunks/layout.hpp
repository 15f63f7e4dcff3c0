// SPDX-License-Identifier: Apache-2.0
// layout.hpp: cuts a dataset of the output into chunks, and finds the elements that a chunk holds.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/batch.hpp"

namespace qrtool::hdf5 {

struct Layout {
  std::vector<hsize_t> dims, chunk;  // `chunk` is empty for a dataset without elements
  std::uint64_t file_bytes = 0;      // an upper bound, with checksums and index
};

/// Cuts a dataset into chunks of up to 1 MiB. A chunk holds whole matrices, along the fastest
/// leading dimension first; a matrix larger than 1 MiB is cut by rows, then by columns. The chunks
/// of a dataset are about equal, so that the last one wastes little space. `matrix` holds the
/// dimensions after the leading ones (0, 1 or 2). Errors: LimitError if the size exceeds 64 bits.
Layout make_layout(std::span<const index_t> leading, std::span<const index_t> matrix,
                   std::size_t element_bytes);

/// The elements first .. first + count - 1 of a dataset in row-major order.
struct Stretch {
  index_t first = 0, count = 0;
};

/// The chunks of a dataset in ascending order, if each is contiguous in the flat order, as the
/// chunks of make_layout are. The last chunk along a dimension may be stored with elements beyond
/// the end.
class Stretches {
 public:
  /// Returns nothing if a chunk is not contiguous, or if there are no elements.
  static std::optional<Stretches> of(std::span<const hsize_t> dims, std::span<const hsize_t> chunk);

  index_t size() const { return outer_ * across_; }
  /// Returns the number of elements in a whole chunk.
  index_t chunk_elements() const { return part_ * below_; }
  /// The elements of the dataset that chunk i holds.
  Stretch operator[](index_t i) const;
  /// Returns the chunk that holds an element.
  index_t containing(index_t element) const;
  /// Returns the index of chunk i's first element, by which HDF5 names the chunk.
  std::vector<hsize_t> offset(index_t i) const;

 private:
  std::vector<hsize_t> dims_;
  // The dimension that is cut. A chunk has one index of each dimension before it, and all indices
  // of the dimensions after it.
  std::size_t cut_ = 0;
  // The extent of that dimension, and the products of the extents before and after it.
  index_t outer_ = 1, extent_ = 1, below_ = 1;
  // The indices of that dimension in a chunk, and the chunks along it.
  index_t part_ = 1, across_ = 1;
};

}  // namespace qrtool::hdf5
