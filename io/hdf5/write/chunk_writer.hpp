// SPDX-License-Identifier: Apache-2.0
// chunk_writer.hpp: writes a dataset from front to back, in chunks with checksums.
#pragma once

#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "core/batch.hpp"
#include "io/file/read_write_at.hpp"
#include "io/hdf5/chunks/layout.hpp"
#include "io/hdf5/structure/driver.hpp"

namespace qrtool::hdf5 {

/// The system refused to write. It is a class because a thread that cannot be started throws a
/// std::system_error, too.
class FailedWrite : public std::system_error {
 public:
  explicit FailedWrite(int error) : std::system_error(error, std::generic_category()) {}
};

/// Writes the elements of a dataset of fletcher32 chunks in their flat order. HDF5 only assigns the
/// places of the chunks, before the first is written; while one thread writes, another computes
/// checksums. Only one thread at a time may use a writer.
class ChunkWriter {
 public:
  /// `dataset` has the chunks of `layout`, which are contiguous in the flat order. It is in a file
  /// that was created with set_locating_driver, and must stay open as long as the writer exists.
  /// `descriptor` is that file, open for writing. At most `threads` threads take part.
  ChunkWriter(hid_t dataset, int descriptor, const Layout& layout, std::size_t element_bytes,
              int threads);

  /// Assigns places to all chunks, in ascending order, so that the file does not depend on the
  /// pieces in which it is written. Call it once, before append(). Returns false if HDF5 reports an
  /// error.
  [[nodiscard]] bool allocate();

  /// The element with which append() continues.
  index_t position() const { return position_; }

  /// Writes the next elements. Elements of a chunk that is not yet full wait in memory. Errors:
  /// FailedWrite.
  void append(const void* values, index_t count);

  /// Goes back to an element before position(), with which append() continues. Errors: FailedWrite.
  void go_back(index_t position);

  /// Writes the elements that wait, and zeros for the rest of their chunk. Errors: FailedWrite.
  void finish();

 private:
  /// A chunk that has all its bytes.
  struct Ready {
    index_t chunk = 0;
    const std::byte* bytes = nullptr;
  };
  std::byte* waiting_at(index_t element_of_chunk);
  Ready take_waiting(index_t chunk, index_t elements);
  void write(std::span<const Ready> chunks);
  void write_group(std::span<const Ready> chunks);

  hid_t dataset_;
  int descriptor_;
  Stretches chunks_;
  std::size_t element_bytes_, chunk_bytes_;
  int threads_;
  std::vector<std::uint64_t> addresses_;  // of the chunks
  index_t position_ = 0;
  HostMemory waiting_;  // the elements of the chunk of position_ that have come so far
  HostMemory taken_;    // the chunk that take_waiting returned last
  FileRange written_;   // by the last group of several chunks
};

}  // namespace qrtool::hdf5
