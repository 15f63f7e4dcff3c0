// SPDX-License-Identifier: Apache-2.0
// layout.hpp: how a dataset of the output is cut into chunks, and which chunks are stretches.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
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

/// Elements first .. first + count - 1 of the flat (row-major) order.
struct Stretch {
  index_t first = 0, count = 0;
};

/// The chunks of a dataset where each holds one stretch of the flat order, as make_layout cuts
/// them; in ascending order. The last one along a dimension may be stored with elements beyond the
/// end.
class Stretches {
 public:
  /// Nothing where the chunks are cut otherwise, or there are no elements.
  static std::optional<Stretches> of(std::span<const hsize_t> dims, std::span<const hsize_t> chunk);

  index_t size() const { return outer_ * across_; }
  /// Of a whole chunk.
  index_t chunk_elements() const { return part_ * below_; }
  /// The elements of the dataset that chunk i holds.
  Stretch operator[](index_t i) const;
  /// The chunk that holds an element.
  index_t containing(index_t element) const;
  /// The index of chunk i's first element, as HDF5 names chunks.
  std::vector<hsize_t> offset(index_t i) const;

 private:
  std::vector<hsize_t> dims_;
  std::size_t cut_ =
      0;  // the dimension that is cut: 1 index of those before it, all of those after
  index_t outer_ = 1, extent_ = 1, below_ = 1;  // product before it, its own, product after it
  index_t part_ = 1, across_ = 1;               // indices of it in a chunk, chunks along it
};

}  // namespace qrtool::hdf5
