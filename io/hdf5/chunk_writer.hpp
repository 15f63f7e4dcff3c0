// SPDX-License-Identifier: Apache-2.0
// chunk_writer.hpp: a dataset written front to back, chunks with their checksums.
#pragma once

#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "core/batch.hpp"
#include "io/hdf5/driver.hpp"
#include "io/hdf5/layout.hpp"

namespace qrtool::hdf5 {

/// The system refused to write; a thread that cannot be started is another std::system_error.
class FailedWrite : public std::system_error {
 public:
  explicit FailedWrite(int error) : std::system_error(error, std::generic_category()) {}
};

/// Writes the bytes of a dataset of fletcher32 chunks in their flat order. HDF5 only gives the
/// chunks their places, before the first is written; several threads compute the checksums and
/// write. One thread at a time per writer.
class ChunkWriter {
 public:
  /// `dataset`: open while this lives, in a file that was created through set_locating_driver, with
  /// the chunks of `layout`, which are stretches; `descriptor`: that file, open for writing. At
  /// most `threads` threads write at once.
  ChunkWriter(hid_t dataset, int descriptor, const Layout& layout, std::size_t element_bytes,
              int threads);

  /// Places for all chunks, in ascending order: a file does not show in which pieces it was
  /// written. To be called once, before append(). False where HDF5 reports an error.
  [[nodiscard]] bool allocate();

  /// The element that append() goes on with.
  index_t position() const { return position_; }

  /// Writes the next elements; those of a chunk that is not full yet wait in memory. Errors:
  /// FailedWrite.
  void append(const void* values, index_t count);

  /// Writes what waits, and zeros for the rest of that chunk. Errors: FailedWrite.
  void finish();

 private:
  /// A chunk whose bytes are all there.
  struct Ready {
    index_t chunk = 0;
    const std::byte* bytes = nullptr;
  };
  std::byte* waiting_at(index_t element_of_chunk);
  Ready take_waiting(index_t chunk, index_t elements);
  void write(std::span<const Ready> chunks) const;

  hid_t dataset_;
  int descriptor_;
  Stretches chunks_;
  std::size_t element_bytes_, chunk_bytes_;
  int threads_;
  std::vector<std::uint64_t> addresses_;  // of the chunks
  index_t position_ = 0;
  HostMemory waiting_;  // the chunk of position_, as far as it is filled
  HostMemory taken_;    // the last one that take_waiting gave
};

}  // namespace qrtool::hdf5
