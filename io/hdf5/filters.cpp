// SPDX-License-Identifier: Apache-2.0
// filters.cpp: sizes before and after each filter.
#include "io/hdf5/filters.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <utility>

namespace qrtool::hdf5 {
namespace {

constexpr std::uint64_t checksum_bytes = 4;
// Before its numbers, the scale-offset filter stores their number of bits (4 bytes), the size of
// their minimum (1) and that minimum (16).
constexpr std::uint64_t scale_offset_header = 21;
// The parameters of the scale-offset and the n-bit filter that state the elements of a chunk and
// their bytes; n-bit also states the kind of type, 1 where it is a plain number, and its bits.
constexpr std::size_t elements_at = 2, kind_at = 3, bytes_at = 4, bits_at = 6;

bool keeps_size(H5Z_filter_t id) { return id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_FLETCHER32; }

/// The first four bytes, which HDF5 stores in little-endian order.
std::uint32_t first_word(const std::vector<std::byte>& bytes) {
  std::uint32_t word = 0;
  if (bytes.size() >= sizeof word) std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

/// Decompresses to at most `most` bytes. Returns false where the data is damaged or gives more.
bool decompress(std::vector<std::byte>& bytes, std::uint64_t most) {
  std::vector<std::byte> made(most);
  uLongf size = most;
  const int result = uncompress(reinterpret_cast<Bytef*>(made.data()), &size,
                                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  made.resize(size);
  bytes = std::move(made);
  return result == Z_OK;
}

}  // namespace

Filters::Filters(hid_t creation, std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {
  const int count = H5Pget_nfilters(creation);
  std::uint64_t bytes = chunk_bytes;
  for (int i = 0; i < count; ++i) {
    Filter filter;
    unsigned flags = 0;
    std::size_t number = filter.values.size();
    filter.id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &number,
                               filter.values.data(), 0, nullptr, nullptr);
    filter.bytes = bytes;
    if (!keeps_size(filter.id)) bytes = 0;
    if (bytes > 0 && filter.id == H5Z_FILTER_FLETCHER32) bytes += checksum_bytes;
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
    needed += checksum_bytes;
  }
  if (stored_bytes == needed) return {};
  return fmt::format("{} bytes where {} are needed", stored_bytes, needed);
}

/// Why what this filter has made is damaged. For gzip, puts what it was given into `bytes`.
std::string Filters::problem_of_encoded(const Filter& filter, std::vector<std::byte>& bytes) const {
  const auto made = [&](std::uint64_t number) {
    return fmt::format("{} bytes where {} are needed", number, filter.bytes);
  };
  const auto& values = filter.values;
  const std::uint64_t of_elements = std::uint64_t{values[elements_at]} * values[bytes_at];
  switch (filter.id) {
    case H5Z_FILTER_DEFLATE: {
      // What another filter makes of a chunk is hardly larger than the chunk.
      constexpr std::uint64_t room = 4096;
      const std::uint64_t most = filter.bytes > 0 ? filter.bytes : 2 * chunk_bytes_ + room;
      if (!decompress(bytes, most)) return "it cannot be decompressed";
      return filter.bytes > 0 && bytes.size() != filter.bytes ? made(bytes.size()) : "";
    }
    case H5Z_FILTER_SZIP:
      return first_word(bytes) == filter.bytes ? "" : made(first_word(bytes));
    case H5Z_FILTER_SCALEOFFSET: {
      if (of_elements != filter.bytes) return made(of_elements);
      const std::uint64_t bits = std::uint64_t{first_word(bytes)} * values[elements_at];
      const std::uint64_t needed = scale_offset_header + (bits + 7) / 8;
      return bytes.size() >= needed ? "" : fmt::format("{} of {} bytes", bytes.size(), needed);
    }
    case H5Z_FILTER_NBIT: {
      if (of_elements != filter.bytes) return made(of_elements);
      const std::uint64_t bits = std::uint64_t{values[bits_at]} * values[elements_at];
      if (values[kind_at] != 1) return "another type than a number";
      return bytes.size() >= (bits + 7) / 8 ? "" : fmt::format("{} bytes", bytes.size());
    }
    default:
      return {};
  }
}

std::string Filters::problem(std::vector<std::byte> bytes, std::uint32_t left_out) const {
  bool is_scrambled = false;  // `bytes` has the right size, but not the content
  for (std::size_t i = filters_.size(); i-- > 0;) {
    const Filter& filter = filters_[i];
    if (left_out >> i & 1) continue;
    if (filter.id == H5Z_FILTER_SHUFFLE) {
      is_scrambled = true;
    } else if (filter.id == H5Z_FILTER_FLETCHER32) {
      if (bytes.size() < checksum_bytes) return "its checksum is missing";
      bytes.resize(bytes.size() - checksum_bytes);
    } else {
      if (is_scrambled) return "its filters have an order that cannot be read";
      const std::string problem = problem_of_encoded(filter, bytes);
      // The first filter that changes the size knows that of the chunk.
      if (!problem.empty() || filter.bytes > 0) return problem;
      is_scrambled = filter.id != H5Z_FILTER_DEFLATE;
    }
  }
  return {};
}

}  // namespace qrtool::hdf5
