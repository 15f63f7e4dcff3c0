// SPDX-License-Identifier: Apache-2.0
// ring.cpp: which rows a piece has, and the threads that copy and sum them.
#include "gpu/host/ring.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/machine/parallel.hpp"
#include "core/measure/checksum.hpp"

namespace qrtool {
namespace {

/// Words that a thread copies at a time. They stay in the thread's own cache until it sums them.
constexpr index_t words_at_once = (index_t{128} << 10) / sizeof(Word);

/// Calls copy(rows in the batch, the same rows in a piece that begins with row `first`) for `rows`
/// rows, which are counted through all matrices, and adds the checksums of the copies to `sums`.
template <class W, class Copy>
void copy_rows(const BatchView<W>& matrices, index_t first, index_t rows, Word* piece, int threads,
               std::span<std::uint64_t> sums, Copy copy) {
  const index_t cols = matrices.cols, at_once = std::max<index_t>(1, words_at_once / cols);
  parallel_for((rows + at_once - 1) / at_once, threads, [&](index_t part, int) {
    index_t row = first + part * at_once;
    const index_t end = std::min(row + at_once, first + rows);
    while (row < end) {
      const index_t b = row / matrices.rows, i = row % matrices.rows;
      const index_t count = std::min(matrices.rows - i, end - row);
      const MatrixView<Word> packed_rows{piece + (row - first) * cols, count, cols, cols};
      copy(matrices[b].row_block(i, count), packed_rows);
      std::atomic_ref(sums[static_cast<std::size_t>(b)])
          .fetch_add(checksum<Word>(packed_rows, i * cols), std::memory_order_relaxed);
      row += count;
    }
  });
}

template <class From, class To>
void copy_matrix(const MatrixView<From>& from, const MatrixView<To>& to) {
  const index_t rows = from.ld == from.cols && to.ld == to.cols ? 1 : from.rows;
  const auto bytes = static_cast<std::size_t>(from.rows * from.cols / rows) * sizeof(Word);
  for (index_t i = 0; i < rows; ++i)
    std::memcpy(to.data + i * to.ld, from.data + i * from.ld, bytes);
}

/// Gives pages to memory that may never have been written, and leaves its bytes as they are.
/// Without this, threads that copy neighbouring rows clear the same page where pages are large.
void populate(const BatchView<Word>& matrices, int threads) {
#ifdef MADV_POPULATE_WRITE
  constexpr std::uintptr_t large_page = std::uintptr_t{2} << 20;
  if (!matrices.is_packed()) return;  // the memory between the rows is not ours
  const auto words = matrices.count * matrices.rows * matrices.cols;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(matrices.data) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(matrices.data + words);
  const std::uintptr_t first = begin / large_page, last = (end - 1) / large_page;
  parallel_for(static_cast<index_t>(last - first + 1), threads, [&](index_t i, int) {
    const std::uintptr_t from = (first + static_cast<std::uintptr_t>(i)) * large_page;
    const std::uintptr_t at = std::max(from, begin), past = std::min(from + large_page, end);
    // A system that does not know this advice clears pages when they are written.
    madvise(reinterpret_cast<void*>(at), past - at, MADV_POPULATE_WRITE);
  });
#endif
}

template <class W>
bool is_empty(const BatchView<W>& matrices) {
  return matrices.count * matrices.rows * matrices.cols == 0;
}

}  // namespace

void CopyRing::Piece::wait() {
  if (copied) copied->wait();
  copied = {};
}

void CopyRing::make(Pieces& some) {
  for (Piece& piece : some)
    if (!piece.memory) piece.memory = allocate_(piece_bytes);
}

void CopyRing::upload(Queue& queue, const Buffer& buffer, BatchView<const Word> matrices,
                      int threads, std::span<std::uint64_t> sums, std::vector<Event>& events) {
  if (is_empty(matrices)) return;
  make(up_);
  const index_t rows = matrices.count * matrices.rows, at_once = rows_of_piece(matrices);
  const auto row_bytes = static_cast<std::size_t>(matrices.cols) * sizeof(Word);
  for (index_t first = 0, number = 0; first < rows; first += at_once, ++number) {
    Piece& piece = up_[static_cast<std::size_t>(number) % pieces];
    piece.wait();
    piece.first = first;
    piece.rows = std::min(at_once, rows - first);
    copy_rows(matrices, first, piece.rows, piece.words(), threads, sums,
              copy_matrix<const Word, Word>);
    queue.start_write(buffer, piece.words(), piece.place(row_bytes), &piece.copied);
    queue.flush();
    events.push_back(piece.copied);
  }
}

void CopyRing::download(Queue& queue, const Buffer& buffer, BatchView<Word> matrices, int threads,
                        std::span<std::uint64_t> sums, std::vector<Event>& events) {
  if (is_empty(matrices)) return;
  make(down_);
  const index_t rows = matrices.count * matrices.rows, at_once = rows_of_piece(matrices);
  const auto row_bytes = static_cast<std::size_t>(matrices.cols) * sizeof(Word);
  const index_t count = (rows + at_once - 1) / at_once;
  const auto order = [&](index_t number) {
    Piece& piece = down_[static_cast<std::size_t>(number) % pieces];
    piece.first = number * at_once;
    piece.rows = std::min(at_once, rows - piece.first);
    queue.start_read(buffer, piece.words(), piece.place(row_bytes), &piece.copied);
    queue.flush();
    events.push_back(piece.copied);
  };
  constexpr auto ahead = static_cast<index_t>(pieces);
  for (index_t number = 0; number < std::min(ahead, count); ++number) order(number);
  populate(matrices, threads);
  for (index_t number = 0; number < count; ++number) {
    Piece& piece = down_[static_cast<std::size_t>(number) % pieces];
    piece.wait();
    copy_rows(
        matrices, piece.first, piece.rows, piece.words(), threads, sums,
        [](const MatrixView<Word>& to, const MatrixView<Word>& from) { copy_matrix(from, to); });
    if (number + ahead < count) order(number + ahead);
  }
}

void CopyRing::forget_copies() {
  for (Pieces* some : {&up_, &down_})
    for (Piece& piece : *some) piece.copied = {};
}

}  // namespace qrtool
