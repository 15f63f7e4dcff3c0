// SPDX-License-Identifier: Apache-2.0
// ring.hpp: copies between ordinary host memory and a device, through a few page-locked pieces.
//
// A driver copies ordinary memory by one thread, and page-locking it first takes longer than the
// copy. Here the threads of the run copy each piece, and sum it while it is in their caches, while
// the device takes or fills another one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "gpu/host/driver.hpp"

namespace qrtool {

/// A word of 32 bits of a matrix, of whatever type.
using Word = std::uint32_t;

/// The same matrices as words. Of const T it gives const words.
template <class T>
auto words_of(BatchView<T> view) {
  using Of = std::conditional_t<std::is_const_v<T>, const Word, Word>;
  constexpr index_t words = sizeof(T) / sizeof(Word);
  return BatchView<Of>{reinterpret_cast<Of*>(view.data),
                       view.count,
                       view.rows,
                       words * view.cols,
                       words * view.ld,
                       words * view.stride};
}

/// The pieces of one device, which are kept from one copy to the next. Not for two threads at once.
class CopyRing {
 public:
  /// `allocate` gives the memory of a piece, page-locked if it can be had.
  explicit CopyRing(std::function<HostMemory(std::size_t)> allocate)
      : allocate_(std::move(allocate)) {}

  /// Whether the rows of `matrices` are short enough for the pieces.
  template <class T>
  static bool takes(const BatchView<T>& matrices) {
    return static_cast<std::size_t>(matrices.cols) * sizeof(T) <= piece_bytes;
  }

  /// Copies matrices to the beginning of `buffer`, where they are packed, appends the events of the
  /// commands, and adds the checksum of each matrix to its entry of `sums`. On return the matrices
  /// may change; the last pieces are still on their way.
  void upload(Queue& queue, const Buffer& buffer, BatchView<const Word> matrices, int threads,
              std::span<std::uint64_t> sums, std::vector<Event>& events);
  /// Copies matrices from the beginning of `buffer` in the same way. On return all have arrived.
  void download(Queue& queue, const Buffer& buffer, BatchView<Word> matrices, int threads,
                std::span<std::uint64_t> sums, std::vector<Event>& events);

  /// To be called where queues have been drained after an error: no piece is on its way.
  void forget_copies();

 private:
  /// Bytes of a piece, and the number of pieces each way. A piece is copied by the device in a
  /// tenth of a millisecond or two. 1 MiB .. 64 MiB, and 2 .. 8; chosen, not measured.
  static constexpr std::size_t piece_bytes = std::size_t{8} << 20;
  static constexpr std::size_t pieces = 3;
  struct Piece {
    HostMemory memory;
    Event copied;  // null: nothing is on its way
    index_t first = 0, rows = 0;

    Word* words() const { return reinterpret_cast<Word*>(memory.get()); }
    /// The bytes in a buffer.
    Queue::Rows place(std::size_t row_bytes) const {
      return {static_cast<std::size_t>(first) * row_bytes,
              static_cast<std::size_t>(rows) * row_bytes};
    }
    void wait();
  };
  using Pieces = std::array<Piece, pieces>;

  void make(Pieces& some);
  static index_t rows_of_piece(const BatchView<const Word>& matrices) {
    return static_cast<index_t>(piece_bytes / sizeof(Word)) / matrices.cols;
  }

  std::function<HostMemory(std::size_t)> allocate_;
  Pieces up_, down_;
};

}  // namespace qrtool
