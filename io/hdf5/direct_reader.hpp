// SPDX-License-Identifier: Apache-2.0
// direct_reader.hpp: numbers out of a dataset without HDF5's pipeline and its one lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/batch.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/hdf5/driver.hpp"
#include "io/hdf5/layout.hpp"

namespace qrtool::hdf5 {

/// Reads float32 and float64 in the processor's byte order, contiguous or in chunks that are
/// stretches, these plain or with a checksum (fletcher32) and no other filter. Several threads read
/// and check; HDF5 only tells where the chunks lie. One thread at a time per reader.
class DirectReader {
 public:
  /// Nothing where the dataset is of another kind. `file` and `dataset` must outlive the reader,
  /// which uses `threads` threads.
  static std::unique_ptr<DirectReader> open(const InputFile& file, const Dataset& dataset,
                                            int threads);

  /// Elements first .. first + count - 1 of the flat order. False, with anything in `out`, where
  /// HDF5 has to read them, and will say what is wrong if something is: T is narrower than the
  /// stored type, a chunk was never written or left its filter out, a checksum does not match, the
  /// system reports an error. Errors: InputError where the file became shorter.
  template <class T>
  bool read(index_t first, index_t count, T* out);

  /// The first element of the piece that holds an element.
  index_t piece_start(index_t element) const { return pieces_[pieces_.containing(element)].first; }

 private:
  /// Elements that are wanted of a piece, and where they go.
  template <class T>
  struct Wanted {
    index_t piece = 0;
    Stretch part;
    T* out = nullptr;
  };

  DirectReader(const InputFile& file, const Dataset& dataset, int threads)
      : file_(file), dataset_(dataset), threads_(threads) {}

  std::size_t chunk_bytes() const { return pieces_.chunk_elements() * dataset_.stored_bytes; }
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
  std::size_t checksum_bytes_ = 0;      // after each chunk
  std::optional<std::uint64_t> start_;  // of contiguous data
  Stretches pieces_;                    // chunks; of contiguous data, what one thread reads at once
  std::vector<HostMemory> scratch_;     // a piece for each thread
  HostMemory last_;                     // and for the last piece of a call
  HostMemory kept_;                     // chunk kept_piece_
  index_t kept_piece_ = -1;
};

}  // namespace qrtool::hdf5
