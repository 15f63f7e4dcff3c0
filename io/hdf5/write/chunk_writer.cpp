// SPDX-License-Identifier: Apache-2.0
// chunk_writer.cpp: gets places from HDF5, and writes chunks and checksums on several threads.
#include "io/hdf5/write/chunk_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/checksum/fletcher32.hpp"
#include "io/file/prepare_and_write.hpp"

namespace qrtool::hdf5 {

// The system is told to write data to the disk after this many bytes. Smaller groups would need too
// many calls.
constexpr std::size_t group_bytes = std::size_t{8} << 20;

ChunkWriter::ChunkWriter(hid_t dataset, int descriptor, const Layout& layout,
                         std::size_t element_bytes, int threads)
    : dataset_(dataset),
      descriptor_(descriptor),
      chunks_(Stretches::of(layout.dims, layout.chunk).value()),
      element_bytes_(element_bytes),
      chunk_bytes_(static_cast<std::size_t>(chunks_.chunk_elements()) * element_bytes),
      threads_(useful_writing_threads(threads)) {}

bool ChunkWriter::allocate() {
  addresses_.reserve(static_cast<std::size_t>(chunks_.size()));
  for (index_t i = 0; i < chunks_.size(); ++i) {
    const auto place = allocate_chunk(dataset_, chunks_.offset(i), chunk_bytes_ + fletcher32_bytes);
    if (!place) return false;
    addresses_.push_back(place->address);
  }
  return true;
}

void ChunkWriter::append(const void* values, index_t count) {
  const auto* from = static_cast<const std::byte*>(values);
  std::vector<Ready> ready;
  bool holds_taken = false;
  while (count > 0) {
    const index_t chunk = chunks_.containing(position_);
    const Stretch stretch = chunks_[chunk];
    const index_t before = position_ - stretch.first;
    const index_t now = std::min(count, stretch.count - before);
    const std::size_t bytes = static_cast<std::size_t>(now) * element_bytes_;
    if (now == chunks_.chunk_elements()) {
      ready.push_back({chunk, from});
    } else {
      std::memcpy(waiting_at(before), from, bytes);
    }
    if (now < chunks_.chunk_elements() && before + now == stretch.count) {
      if (holds_taken) write(std::exchange(ready, {}));
      ready.push_back(take_waiting(chunk, stretch.count));
      holds_taken = true;
    }
    position_ += now;
    from += bytes;
    count -= now;
  }
  write(ready);
}

void ChunkWriter::go_back(index_t position) {
  const index_t chunk = chunks_.containing(position), before = position - chunks_[chunk].first;
  // The waiting memory holds the elements before `position` unless their chunk is written already.
  const bool is_written = position_ >= chunks_[chunk].first + chunks_[chunk].count;
  position_ = position;
  if (before == 0 || !is_written) return;
  const std::size_t bytes = static_cast<std::size_t>(before) * element_bytes_;
  const TwoParts parts{{{waiting_at(0), bytes}, {nullptr, 0}}};
  errno = 0;
  if (read_at(descriptor_, addresses_[static_cast<std::size_t>(chunk)], parts) != bytes)
    throw FailedWrite(errno != 0 ? errno : EIO);
}

void ChunkWriter::finish() {
  begin_sync(descriptor_, std::exchange(written_, {}));
  const Stretch last = chunks_[chunks_.size() - 1];
  if (position_ == last.first + last.count) return;
  const index_t chunk = chunks_.containing(position_);
  const index_t waiting = position_ - chunks_[chunk].first;
  if (waiting > 0) write(std::array{take_waiting(chunk, waiting)});
}

std::byte* ChunkWriter::waiting_at(index_t element_of_chunk) {
  if (!waiting_) waiting_ = allocate_host(chunk_bytes_);
  return waiting_.get() + static_cast<std::size_t>(element_of_chunk) * element_bytes_;
}

/// Returns the waiting chunk, which has `elements` elements. The next call uses its memory again.
ChunkWriter::Ready ChunkWriter::take_waiting(index_t chunk, index_t elements) {
  std::byte* const end = waiting_at(elements);
  std::fill(end, waiting_.get() + chunk_bytes_, std::byte{0});
  std::swap(waiting_, taken_);
  return {chunk, taken_.get()};
}

/// While a group is written, the system begins to sync the group before it.
void ChunkWriter::write(std::span<const Ready> chunks) {
  const std::size_t each = std::max<std::size_t>(group_bytes / chunk_bytes_, 1);
  for (; !chunks.empty(); chunks = chunks.subspan(std::min(each, chunks.size())))
    write_group(chunks.first(std::min(each, chunks.size())));
}

void ChunkWriter::write_group(std::span<const Ready> chunks) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<std::uint32_t> checksums(chunks.size());
  static_assert(sizeof checksums[0] == fletcher32_bytes);
  prepare_and_write(
      std::ssize(chunks), threads_,
      [&](index_t i) { checksums[i] = fletcher32(chunks[i].bytes, chunk_bytes_); },
      [&](index_t i) {
        const TwoParts parts{{{const_cast<std::byte*>(chunks[i].bytes), chunk_bytes_},
                              {&checksums[i], fletcher32_bytes}}};
        const int error = write_at(descriptor_, addresses_[chunks[i].chunk], parts);
        if (error != 0) throw FailedWrite(error);
      },
      [&] { begin_sync(descriptor_, written_); });
  const std::uint64_t first = addresses_[chunks.front().chunk];
  const std::uint64_t last = addresses_[chunks.back().chunk];
  written_ = {};
  if (first < last) written_ = {first, last + chunk_bytes_ + fletcher32_bytes - first};
}

}  // namespace qrtool::hdf5
