// SPDX-License-Identifier: Apache-2.0
// filters.hpp: undoes the filters of HDF5's chunks, and finds out whether they make a whole chunk
// of what is stored. HDF5 itself takes what they give for the whole chunk, and reads beyond its end
// where it is less.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace qrtool::hdf5 {

/// Whether Filters::unpack can undo a filter: a filter that it knows, even if the library lacks it,
/// or a filter of a plugin.
bool can_undo(H5Z_filter_t filter);

/// Memory that grows and never shrinks.
class Bytes {
 public:
  /// Makes the memory `size` bytes long. The content is lost if the memory has to grow.
  void resize(std::size_t size);
  std::byte* data() { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<const std::byte> view() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0, room_ = 0;
};

/// A chunk between two filters.
struct ChunkBytes {
  Bytes now, next;  // what it is, and room for what it becomes
};

/// The filters of a dataset, in the order in which they are applied when a chunk is written.
class Filters {
 public:
  Filters() = default;
  /// `creation` holds the creation properties of a dataset with chunks of `chunk_bytes`.
  Filters(hid_t creation, std::uint64_t chunk_bytes);

  bool are_none() const { return filters_.empty(); }

  // `left_out` has a bit for each filter that was not applied to a chunk.

  /// Whether the stored size of a chunk shows whether it is whole.
  bool keep_size(std::uint32_t left_out) const;
  /// Returns the reason why a chunk of this stored size is damaged if the filters keep_size, or an
  /// empty text.
  std::string problem_of_size(std::uint64_t stored_bytes, std::uint32_t left_out) const;

  /// Whether unpack() can undo all filters. There is at least one besides checksums.
  bool can_be_undone() const;
  /// Turns the stored bytes in `chunk.now` into the whole chunk. Returns the reason why it is
  /// damaged, or an empty text. Several threads may call it.
  std::string unpack(ChunkBytes& chunk, std::uint32_t left_out) const;
  /// Returns the reason why a chunk is damaged, or an empty text. It is for chunks whose filters
  /// HDF5 has to undo: it decompresses as far as unpack() could, and compares the sizes that HDF5's
  /// other filters state.
  std::string problem(ChunkBytes& chunk, std::uint32_t left_out) const;

 private:
  struct Filter {
    H5Z_filter_t id = 0;
    std::size_t number = 0;  // of parameters
    std::array<unsigned, 20> values{};
    std::uint64_t bytes = 0;  // what it is given; 0 where a filter before changes sizes
  };
  std::string undo(const Filter& filter, ChunkBytes& chunk) const;
  std::string decompress(const Filter& filter, ChunkBytes& chunk) const;
  static std::string problem_of_encoded(const Filter& filter, std::span<const std::byte> bytes);

  std::uint64_t chunk_bytes_ = 0;
  std::vector<Filter> filters_;
};

}  // namespace qrtool::hdf5
