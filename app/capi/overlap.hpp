// SPDX-License-Identifier: Apache-2.0
// overlap.hpp: whether arrays of the caller's share memory. Arrays may lie between each other, such
// as columns of one larger array; what counts is whether a byte belongs to both.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "app/capi/arrays.hpp"

namespace qrtool::capi {

/// The bytes of an array: runs without a gap, repeated in up to three dimensions.
class Footprint {
 public:
  /// `name` is the name of the array in messages. A null `data`, or an array without entries, has
  /// no bytes.
  template <class T>
  Footprint(const char* name, const Strided<T>& array)
      : Footprint(name, array.data, sizeof(T),
                  {Dimension{array.count, array.stride}, Dimension{array.rows, array.row_stride},
                   Dimension{array.cols, array.col_stride}}) {}
  /// `count` structs of `bytes` each.
  Footprint(const char* name, const void* data, index_t count, std::size_t bytes)
      : Footprint(name, data, bytes, {Dimension{count, 1}, Dimension{}, Dimension{}}) {}

  const char* name() const { return name_; }
  bool shares_memory_with(const Footprint& other) const;

 private:
  struct Dimension {
    index_t count = 1, stride = 0;  // in elements, and then in bytes
  };
  using Dimensions = std::array<Dimension, 3>;
  /// A part of the bytes: the dimensions from `next` on are still to be gone through.
  struct Part {
    std::intptr_t first;
    std::size_t next;
  };

  Footprint(const char* name, const void* data, std::size_t bytes, const Dimensions& dimensions);
  index_t reach(std::size_t next) const;
  bool share(const Part& part, const Footprint& other, const Part& its_part) const;

  const char* name_;
  std::intptr_t first_ = 0;
  index_t run_ = 0;             // bytes without a gap
  Dimensions dimensions_ = {};  // of what repeats the run, the largest stride first
  std::size_t number_ = 0;      // of dimensions
};

/// Refuses outputs that share memory with inputs or with each other. Errors: UsageError.
void require_apart(std::span<const Footprint> outputs, std::span<const Footprint> inputs);

}  // namespace qrtool::capi
