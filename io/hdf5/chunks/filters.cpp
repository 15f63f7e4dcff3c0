// SPDX-License-Identifier: Apache-2.0
// filters.cpp: gzip, lzf, shuffle and fletcher32 backwards, and the sizes that other filters state.
#include "io/hdf5/chunks/filters.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "io/checksum/fletcher32.hpp"
#include "io/hdf5/chunks/lzf.hpp"
#include "io/hdf5/chunks/plugin.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr H5Z_filter_t filter_lzf = 32000;
// Before its numbers, the scale-offset filter stores their number of bits (4 bytes), the size of
// their minimum (1) and that minimum (16).
constexpr std::uint64_t scale_offset_header = 21;
// Positions among the parameters of the scale-offset and n-bit filters: the number of elements in a
// chunk, the kind of type (n-bit only; 1 is a plain number), the bytes of an element, and its bits.
constexpr std::size_t elements_at = 2, kind_at = 3, bytes_at = 4, bits_at = 6;

bool keeps_size(H5Z_filter_t id) { return id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_FLETCHER32; }
bool compresses(H5Z_filter_t id) { return id == H5Z_FILTER_DEFLATE || id == filter_lzf; }

/// Returns the first four bytes, which HDF5 stores in little-endian order.
std::uint32_t first_word(std::span<const std::byte> bytes) {
  std::uint32_t word = 0;
  if (bytes.size() >= sizeof word) std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

std::string unlike(std::uint64_t bytes, std::uint64_t needed) {
  return fmt::format("{} bytes where {} are needed", bytes, needed);
}

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* each) const { libdeflate_free_decompressor(each); }
};

/// Inflates zlib's format. Returns the number of bytes, or nothing if `from` is damaged or `to` is
/// too small.
std::optional<std::size_t> inflate(std::span<const std::byte> from, Bytes& to) {
  thread_local const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(
      libdeflate_alloc_decompressor());
  if (!decompressor) throw std::bad_alloc();
  std::size_t size = 0;
  const libdeflate_result result = libdeflate_zlib_decompress(
      decompressor.get(), from.data(), from.size(), to.data(), to.size(), &size);
  return result == LIBDEFLATE_SUCCESS ? std::optional(size) : std::nullopt;
}

/// Byte j of element i is at from[j * elements + i] and goes to to[i * size + j].
template <std::size_t Size>
void join_bytes(const std::byte* from, std::size_t elements, std::byte* to) {
  for (std::size_t i = 0; i < elements; ++i) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < Size; ++j) to[i * Size + j] = from[j * elements + i];
  }
}

void unshuffle(std::span<const std::byte> from, std::size_t size, std::byte* to) {
  const std::size_t elements = from.size() / size, whole = elements * size;
  switch (size) {
    case 2:
      join_bytes<2>(from.data(), elements, to);
      break;
    case 4:
      join_bytes<4>(from.data(), elements, to);
      break;
    case 8:
      join_bytes<8>(from.data(), elements, to);
      break;
    default:
      for (std::size_t j = 0; j < size; ++j) {
        for (std::size_t i = 0; i < elements; ++i) to[i * size + j] = from[j * elements + i];
      }
  }
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(whole), from.end(), to + whole);
}

}  // namespace

bool can_undo(H5Z_filter_t filter) {
  return keeps_size(filter) || compresses(filter) || find_plugin(filter) != nullptr;
}

void Bytes::resize(std::size_t size) {
  if (size > room_) {
    data_ = nullptr;
    data_ = std::make_unique_for_overwrite<std::byte[]>(size);
    room_ = size;
  }
  size_ = size;
}

Filters::Filters(hid_t creation, std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {
  const int count = H5Pget_nfilters(creation);
  std::uint64_t bytes = chunk_bytes;
  for (int i = 0; i < count; ++i) {
    Filter filter;
    unsigned flags = 0;
    filter.number = filter.values.size();
    filter.id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &filter.number,
                               filter.values.data(), 0, nullptr, nullptr);
    filter.bytes = bytes;
    filter.number = std::min(filter.number, filter.values.size());
    if (!keeps_size(filter.id)) bytes = 0;
    if (bytes > 0 && filter.id == H5Z_FILTER_FLETCHER32) bytes += fletcher32_bytes;
    filters_.push_back(filter);
  }
}

bool Filters::keep_size(std::uint32_t left_out) const {
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    if ((left_out >> i & 1) == 0 && !keeps_size(filters_[i].id)) return false;
  }
  return true;
}

std::string Filters::problem_of_size(std::uint64_t stored_bytes, std::uint32_t left_out) const {
  std::uint64_t needed = chunk_bytes_;
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    if (filters_[i].id != H5Z_FILTER_FLETCHER32) continue;
    if (left_out >> i & 1) return "its checksum is missing";
    needed += fletcher32_bytes;
  }
  return stored_bytes == needed ? "" : unlike(stored_bytes, needed);
}

bool Filters::can_be_undone() const {
  const auto is_checksum = [](const Filter& f) { return f.id == H5Z_FILTER_FLETCHER32; };
  return std::all_of(filters_.begin(), filters_.end(),
                     [](const Filter& f) { return can_undo(f.id); }) &&
         !std::all_of(filters_.begin(), filters_.end(), is_checksum);
}

std::string Filters::decompress(const Filter& filter, ChunkBytes& chunk) const {
  std::optional<std::size_t> size;
  if (compresses(filter.id)) {
    // The result of another filter is hardly larger than the chunk.
    constexpr std::uint64_t room = 4096;
    chunk.next.resize(filter.bytes > 0 ? filter.bytes : 2 * chunk_bytes_ + room);
    size = filter.id == filter_lzf ? decompress_lzf(chunk.now.view(), chunk.next)
                                   : inflate(chunk.now.view(), chunk.next);
  } else {
    size = undo_plugin(filter.id, std::span(filter.values).first(filter.number), chunk.now.view(),
                       chunk.next);
  }
  if (!size) return "it cannot be decompressed";
  if (filter.bytes > 0 && *size != filter.bytes) return unlike(*size, filter.bytes);
  chunk.next.resize(*size);
  return {};
}

std::string Filters::undo(const Filter& filter, ChunkBytes& chunk) const {
  if (filter.id == H5Z_FILTER_FLETCHER32) {
    if (chunk.now.size() < fletcher32_bytes) return "its checksum is missing";
    const std::size_t bytes = chunk.now.size() - fletcher32_bytes;
    const std::uint32_t checksum = first_word(chunk.now.view().subspan(bytes));
    if (!matches_fletcher32(checksum, chunk.now.data(), bytes)) return "checksum mismatch";
    chunk.now.resize(bytes);
    return {};
  }
  // HDF5 refuses higher levels, too.
  constexpr unsigned most_deflate_level = 9;
  const unsigned size = filter.values[0];  // of shuffled elements
  if ((filter.id == H5Z_FILTER_SHUFFLE && (filter.number != 1 || size == 0)) ||
      (filter.id == H5Z_FILTER_DEFLATE &&
       (filter.number != 1 || filter.values[0] > most_deflate_level))) {
    return "a filter has parameters that no program writes";
  }
  if (filter.id == H5Z_FILTER_SHUFFLE) {
    // A single element, or a part of one, stays as it is, whatever size a damaged file states.
    if (size == 1 || chunk.now.size() / size < 2) return {};
    chunk.next.resize(chunk.now.size());
    unshuffle(chunk.now.view(), size, chunk.next.data());
  } else if (std::string problem = decompress(filter, chunk); !problem.empty()) {
    return problem;
  }
  std::swap(chunk.now, chunk.next);
  return {};
}

std::string Filters::unpack(ChunkBytes& chunk, std::uint32_t left_out) const {
  for (std::size_t i = filters_.size(); i-- > 0;) {
    if (left_out >> i & 1) continue;
    if (std::string problem = undo(filters_[i], chunk); !problem.empty()) return problem;
  }
  return chunk.now.size() == chunk_bytes_ ? "" : unlike(chunk.now.size(), chunk_bytes_);
}

/// Returns the reason why the output of this filter is damaged, or an empty text.
std::string Filters::problem_of_encoded(const Filter& filter, std::span<const std::byte> bytes) {
  const auto& values = filter.values;
  const std::uint64_t of_elements = std::uint64_t{values[elements_at]} * values[bytes_at];
  switch (filter.id) {
    case H5Z_FILTER_SZIP:
      return first_word(bytes) == filter.bytes ? "" : unlike(first_word(bytes), filter.bytes);
    case H5Z_FILTER_SCALEOFFSET: {
      if (of_elements != filter.bytes) return unlike(of_elements, filter.bytes);
      const std::uint64_t bits = std::uint64_t{first_word(bytes)} * values[elements_at];
      const std::uint64_t needed = scale_offset_header + (bits + 7) / 8;
      return bytes.size() >= needed ? "" : fmt::format("{} of {} bytes", bytes.size(), needed);
    }
    case H5Z_FILTER_NBIT: {
      if (of_elements != filter.bytes) return unlike(of_elements, filter.bytes);
      const std::uint64_t bits = std::uint64_t{values[bits_at]} * values[elements_at];
      if (values[kind_at] != 1) return "another type than a number";
      return bytes.size() >= (bits + 7) / 8 ? "" : fmt::format("{} bytes", bytes.size());
    }
    default:
      return {};
  }
}

std::string Filters::problem(ChunkBytes& chunk, std::uint32_t left_out) const {
  bool is_known = true;  // chunk.now has the content that the next filter made
  for (std::size_t i = filters_.size(); i-- > 0;) {
    const Filter& filter = filters_[i];
    if (left_out >> i & 1) continue;
    if (can_undo(filter.id) && is_known) {
      if (std::string problem = undo(filter, chunk); !problem.empty()) return problem;
    } else if (!keeps_size(filter.id)) {
      if (!is_known) return "its filters have an order that cannot be read";
      // The first filter that changes the size knows the size of the chunk.
      const std::string problem = problem_of_encoded(filter, chunk.now.view());
      if (!problem.empty() || filter.bytes > 0) return problem;
      is_known = false;
    }
  }
  return {};
}

}  // namespace qrtool::hdf5
