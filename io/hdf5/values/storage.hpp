// SPDX-License-Identifier: Apache-2.0
// storage.hpp: compares what a file stores for a dataset with what its type and its dimensions ask
// for. HDF5 trusts these sizes, and reads beyond the end of what is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5/chunks/filters.hpp"
#include "io/hdf5/datasets/dataset.hpp"
#include "io/hdf5/structure/driver.hpp"

namespace qrtool::hdf5 {

/// Knows which bytes of the file belong to a dataset. `file` and `dataset` must outlive it. One
/// thread at a time may use it.
class Storage {
 public:
  /// Compares the sizes that belong to the dataset as a whole. Decompresses on at most `threads`
  /// threads. Errors: InputError.
  Storage(const InputFile& file, const Dataset& dataset, int threads);

  /// Compares the sizes of all chunks that have elements in start .. start + count - 1 with the
  /// expected ones. Call it before HDF5 reads them. Errors: InputError.
  void require_chunks(std::span<const hsize_t> start, std::span<const hsize_t> count);

  /// Refuses a part, elements start .. start + count - 1, that is larger than a file of this size
  /// can hold. Chunks that were never written use no space, so there may be more of them. Errors:
  /// LimitError.
  void require_possible_size(std::span<const hsize_t> start, std::span<const hsize_t> count) const;

  /// Elements start .. start + count - 1.
  struct Part {
    std::vector<hsize_t> start, count;
  };
  /// Cuts a part into parts that are contiguous in memory and have elements of at most `most`
  /// chunks. A part has elements of more chunks if it would otherwise share one with the next part.
  std::vector<Part> cut(Part part, hsize_t most) const;
  /// Returns the memory of HDF5 for the places of the chunks.
  std::size_t index_bytes() const;

  /// Whether the chunks can be unpacked without HDF5.
  bool can_be_unpacked() const;
  bool has_fill_value() const { return has_fill_value_; }
  const Filters& filters() const { return filters_; }
  std::span<const hsize_t> chunk() const { return chunk_; }
  std::uint64_t chunk_bytes() const { return chunk_bytes_; }
  int threads() const { return threads_; }
  /// Finds the chunk whose first element has the index `offset`, and checks its size if the filters
  /// keep it. Returns nothing if the chunk was never written and has the fill value. Errors:
  /// InputError.
  std::optional<StoredChunk> find(std::span<const hsize_t> offset) const;
  [[noreturn]] void throw_damaged(const std::string& cause) const;
  [[noreturn]] void throw_damaged_chunk(const std::string& cause,
                                        std::span<const hsize_t> offset) const;

 private:
  /// A chunk and the index of its first element.
  struct Found {
    StoredChunk chunk;
    std::vector<hsize_t> offset;
  };
  void require_inside(const Extent& extent) const;
  void require_contiguous(H5D_layout_t layout) const;
  void take_chunks(hid_t creation);
  bool has_no_chunk() const;
  std::vector<hsize_t> require_chunk_extents() const;
  void require_index(std::span<const hsize_t> largest) const;
  bool is_new(std::span<const hsize_t> chunk_index);
  void require_decodable(std::span<const Found> chunks) const;
  void require_fill_value() const;

  const InputFile& file_;
  const Dataset& dataset_;
  int threads_;
  std::uint64_t file_end_ = 0;  // of what the file says is its own
  std::vector<hsize_t> chunk_;  // extents; empty unless the dataset is chunked
  std::uint64_t chunk_bytes_ = 0;
  Filters filters_;
  bool filters_partial_chunks_ = true;  // chunks with elements beyond the end
  bool has_fill_value_ = false;
  bool is_unwritten_ = false;   // no chunk is stored
  std::vector<bool> compared_;  // the chunks that need no second look; empty where there are many
};

}  // namespace qrtool::hdf5
