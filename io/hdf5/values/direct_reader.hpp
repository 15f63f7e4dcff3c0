// SPDX-License-Identifier: Apache-2.0
// direct_reader.hpp: reads the numbers of a dataset without HDF5's filter pipeline and global lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/batch.hpp"
#include "io/hdf5/chunks/layout.hpp"
#include "io/hdf5/datasets/dataset.hpp"
#include "io/hdf5/structure/driver.hpp"

namespace qrtool::hdf5 {

/// Reads float32, float64, complex64 and complex128 in the byte order of the processor. The dataset
/// is contiguous, or it has chunks that are stretches, without a filter or with fletcher32 only.
/// Several threads read and check; HDF5 only gives the places of the chunks. Only one thread at a
/// time may use a reader.
class DirectReader {
 public:
  /// Creates a reader that uses `threads` threads, or fewer if their chunks would not fit in
  /// `memory_bytes`. Returns null if the dataset is of another kind. `file` and `dataset` must
  /// outlive the reader.
  static std::unique_ptr<DirectReader> open(const InputFile& file, const Dataset& dataset,
                                            int threads, std::size_t memory_bytes);

  /// Returns the most memory that the reader needs for itself if numbers are read as `type`.
  std::size_t workspace_bytes(ElementType type) const;

  /// Reads elements first .. first + count - 1 of the flat order. Returns false, and leaves `out`
  /// undefined, if the caller must read through HDF5, which then reports any error: T is narrower
  /// than the stored type, a chunk was never written or was written without its filter, a checksum
  /// does not match, or the system reports an error. Errors: InputError if the file has become
  /// shorter.
  template <class T>
  bool read(index_t first, index_t count, T* out);

  /// The first element of the piece that holds an element.
  index_t piece_start(index_t element) const { return pieces_[pieces_.containing(element)].first; }

 private:
  /// The elements to read from a piece, and the place for them.
  template <class T>
  struct Wanted {
    index_t piece = 0;
    Stretch part;
    T* out = nullptr;
  };

  DirectReader(const InputFile& file, const Dataset& dataset, int threads)
      : file_(file), dataset_(dataset), threads_(threads) {}

  std::size_t chunk_bytes() const { return pieces_.chunk_elements() * dataset_.stored_bytes; }
  /// Whether a part of a piece can be read without the rest, which a checksum rules out.
  bool can_be_cut() const { return checksum_bytes_ == 0; }
  template <class T>
  std::vector<Wanted<T>> cut(index_t first, index_t count, T* out) const;
  template <class T>
  std::optional<Extent> find(const Wanted<T>& wanted) const;
  bool load(const Extent& from, std::byte* to) const;
  template <class T>
  void copy(const std::byte* stored, const Wanted<T>& wanted) const;
  template <class T>
  bool read_piece(const Wanted<T>& wanted, const Extent& from, HostMemory& scratch) const;
  template <class T>
  void keep_last(const Wanted<T>& wanted);

  const InputFile& file_;
  const Dataset& dataset_;
  int threads_;
  int descriptor_ = -1;
  std::size_t checksum_bytes_ = 0;      // the bytes of the checksum after each chunk
  std::optional<std::uint64_t> start_;  // the place of contiguous data
  Stretches pieces_;                    // the chunks, or cuts of contiguous data, one per thread
  std::vector<HostMemory> scratch_;     // memory for one piece per thread
  HostMemory last_;                     // memory for the last piece of a call
  HostMemory kept_;                     // the content of chunk kept_piece_
  index_t kept_piece_ = -1;
};

}  // namespace qrtool::hdf5
