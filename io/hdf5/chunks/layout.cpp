// SPDX-License-Identifier: Apache-2.0
// layout.cpp: computes chunk sizes, and converts between chunks and elements.
#include "io/hdf5/chunks/layout.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/checksum/fletcher32.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t index_bytes = 32;  // per chunk: address, size, mask, with room to spare

/// Returns the extent of each part when `whole` is cut into as few parts of about equal size as
/// possible, none larger than `largest`.
std::uint64_t part_of(std::uint64_t whole, std::uint64_t largest) {
  const std::uint64_t parts = (whole + largest - 1) / largest;
  return (whole + parts - 1) / parts;
}

}  // namespace

Layout make_layout(std::span<const index_t> leading, std::span<const index_t> matrix,
                   std::size_t element_bytes) {
  Layout layout;
  layout.dims.assign(leading.begin(), leading.end());
  layout.dims.insert(layout.dims.end(), matrix.begin(), matrix.end());
  if (std::find(layout.dims.begin(), layout.dims.end(), 0) != layout.dims.end()) return layout;

  // From the fastest dimension outwards, a chunk has whole dimensions as long as they fit, then a
  // part of one dimension, then single indices. It is therefore contiguous in the flat order.
  layout.chunk.assign(layout.dims.size(), 1);
  std::uint64_t room = std::max<std::uint64_t>(1, chunk_bytes / element_bytes);
  std::uint64_t bytes = element_bytes, chunks = 1;
  bool overflow = false;
  for (std::size_t d = layout.dims.size(); d-- > 0;) {
    const hsize_t extent = layout.dims[d];
    layout.chunk[d] = part_of(extent, std::min<std::uint64_t>(extent, room));
    room = layout.chunk[d] == extent ? room / extent : 1;
    const std::uint64_t across = (extent + layout.chunk[d] - 1) / layout.chunk[d];
    overflow |= __builtin_mul_overflow(chunks, across, &chunks);
    overflow |= __builtin_mul_overflow(bytes, layout.chunk[d], &bytes);
  }
  overflow |=
      __builtin_mul_overflow(chunks, bytes + fletcher32_bytes + index_bytes, &layout.file_bytes);
  if (overflow || layout.file_bytes > static_cast<std::uint64_t>(INT64_MAX)) {
    throw LimitError("the output would be larger than a file can be");
  }
  return layout;
}

std::optional<Stretches> Stretches::of(std::span<const hsize_t> dims,
                                       std::span<const hsize_t> chunk) {
  if (dims.empty() || chunk.size() != dims.size()) return {};
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return {};
  Stretches s;
  s.dims_.assign(dims.begin(), dims.end());
  const auto first = std::find_if(chunk.begin(), chunk.end() - 1, [](hsize_t c) { return c > 1; });
  s.cut_ = static_cast<std::size_t>(first - chunk.begin());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto extent = static_cast<index_t>(dims[d]);
    if (d < s.cut_) s.outer_ *= extent;
    if (d > s.cut_) s.below_ *= extent;
    if (d > s.cut_ && chunk[d] != dims[d]) return {};
  }
  s.extent_ = static_cast<index_t>(dims[s.cut_]);
  s.part_ = static_cast<index_t>(chunk[s.cut_]);
  s.across_ = (s.extent_ + s.part_ - 1) / s.part_;
  return s;
}

Stretch Stretches::operator[](index_t i) const {
  const index_t start = i % across_ * part_;
  return {(i / across_ * extent_ + start) * below_, std::min(part_, extent_ - start) * below_};
}

index_t Stretches::containing(index_t element) const {
  const index_t row = element / below_;
  return row / extent_ * across_ + row % extent_ / part_;
}

std::vector<hsize_t> Stretches::offset(index_t i) const {
  std::vector<hsize_t> offset(dims_.size(), 0);
  offset[cut_] = static_cast<hsize_t>(i % across_ * part_);
  auto rest = static_cast<hsize_t>(i / across_);
  for (std::size_t d = cut_; d-- > 0; rest /= dims_[d]) offset[d] = rest % dims_[d];
  return offset;
}

}  // namespace qrtool::hdf5
