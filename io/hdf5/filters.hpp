// SPDX-License-Identifier: Apache-2.0
// filters.hpp: finds out whether HDF5's filters make a whole chunk of what is stored. HDF5 itself
// takes what they give for the whole chunk, and reads beyond its end where it is less.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace qrtool::hdf5 {

/// The filters of a dataset, in the order in which they are applied when a chunk is written.
class Filters {
 public:
  Filters() = default;
  /// `creation` holds the creation properties of a dataset with chunks of `chunk_bytes`.
  Filters(hid_t creation, std::uint64_t chunk_bytes);

  // `left_out` has a bit for each filter that was not applied to a chunk.

  /// Whether the stored size of a chunk shows whether it is whole.
  bool keep_size(std::uint32_t left_out) const;
  /// Why a chunk of this stored size is damaged, where they keep_size; empty where it is not.
  std::string problem_of_size(std::uint64_t stored_bytes, std::uint32_t left_out) const;
  /// The same for the bytes of any chunk. Decompresses gzip; for the other filters of HDF5, which
  /// state their sizes, it compares these; the filters of plugins are unknown. Several threads may
  /// call it.
  std::string problem(std::vector<std::byte> stored, std::uint32_t left_out) const;

 private:
  struct Filter {
    H5Z_filter_t id = 0;
    std::array<unsigned, 20> values{};  // its parameters
    std::uint64_t bytes = 0;            // what it is given; 0 where a filter before changes sizes
  };
  std::string problem_of_encoded(const Filter& filter, std::vector<std::byte>& bytes) const;

  std::uint64_t chunk_bytes_ = 0;
  std::vector<Filter> filters_;
};

}  // namespace qrtool::hdf5
