// SPDX-License-Identifier: Apache-2.0
// unpacker.hpp: reads compressed chunks on several threads. Each is unpacked once, and the bytes
// whose size was compared are those that are used.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/machine/parallel.hpp"
#include "io/hdf5/values/storage.hpp"

namespace qrtool::hdf5 {

/// Reads boxes of a dataset whose filters Filters::unpack can undo. HDF5 finds the chunks and
/// converts types. Only one thread at a time may use it.
class Unpacker {
 public:
  /// The most bytes of chunks that it keeps for the next call, its threads and its memory. It uses
  /// fewer threads if it would need more than `memory_bytes`.
  struct Means {
    int threads = 1;
    std::size_t most_kept = 0, memory_bytes = SIZE_MAX;
  };
  /// Returns null if the dataset is of another kind. The arguments must outlive the object.
  static std::unique_ptr<Unpacker> open(const InputFile& file, const Dataset& dataset,
                                        const Storage& storage, const Means& means);

  /// Returns the most memory that it needs for itself if numbers are read as `type`.
  std::size_t workspace_bytes(ElementType type) const;

  /// Reads elements start .. start + count - 1 into `out`, which has the shape `count`. `transfer`
  /// says what happens to a number that does not fit T. Returns false if HDF5 cannot convert them;
  /// take_error() tells why. Errors: InputError.
  template <class T>
  bool read(std::span<const hsize_t> start, std::span<const hsize_t> count, hid_t transfer, T* out);

 private:
  /// A box of the dataset and the memory for it, in elements as they are stored.
  struct Box {
    std::span<const hsize_t> start, count;
    std::byte* out;
  };
  /// A chunk that holds elements of a box.
  struct Part {
    std::vector<hsize_t> offset;        // of its first element
    std::optional<StoredChunk> stored;  // nothing where it was never written
    const std::byte* kept = nullptr;    // its elements, where a call before has unpacked it
    bool is_held = false;               // these are in the memory of a thread
    bool is_kept = false;               // for the next call, which continues in it
  };
  /// The chunks that are kept, by their number. The oldest is at the front.
  using Kept = std::list<std::pair<std::uint64_t, Bytes>>;

  Unpacker(const InputFile& file, const Dataset& dataset, const Storage& storage,
           const Means& means)
      : file_(file),
        dataset_(dataset),
        storage_(storage),
        threads_(means.threads),
        most_kept_(means.most_kept) {}

  void read_stored(const Box& box);
  /// The first and the last chunk of a box, and the chunk that is next.
  struct Progress {
    std::vector<hsize_t> first, last, next;  // indices of chunks
    bool is_done = false;
    std::size_t to_keep = 0;  // bytes of chunks that the next call may need
  };
  Progress begin(const Box& box) const;
  std::vector<Part> cut(const Box& box, Progress& progress);
  void read_parts(std::span<const Part> parts, const Box& box);
  std::uint64_t number_of(std::span<const hsize_t> offset) const;
  std::string unpack(const Part& part, ChunkBytes& chunk) const;
  void copy(const Part& part, const std::byte* elements, const Box& box) const;
  void keep(const Part& part, Bytes bytes);
  void join_parts(std::size_t elements, std::byte* stored) const;

  const InputFile& file_;
  const Dataset& dataset_;
  const Storage& storage_;
  int threads_;
  int descriptor_ = -1;
  Handle type_;                                     // of the stored elements
  Handle number_type_;                              // of their numbers: of complex ones the parts
  std::array<std::size_t, 2> part_offsets_{};       // of the parts, in bytes
  Bytes fill_;                                      // one element that was never written
  std::vector<ChunkBytes> memory_;                  // of each thread
  std::vector<std::optional<std::uint64_t>> held_;  // the number of the chunk that is there
  Bytes wide_;                                      // elements that are wider than the wanted type
  std::size_t most_kept_ = 0, kept_bytes_ = 0;
  Kept kept_;
  std::unordered_map<std::uint64_t, Kept::iterator> find_kept_;
};

}  // namespace qrtool::hdf5
