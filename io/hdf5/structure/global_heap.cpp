// SPDX-License-Identifier: Apache-2.0
// global_heap.cpp: walks from object to object. The layout is that of the HDF5 File Format
// Specification 3.0, section III.E.
#include "io/hdf5/structure/global_heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "io/hdf5/structure/superblock.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr std::string_view global_heap_signature("GCOL\1\0\0\0",
                                                 8);  // with the version and what is reserved
constexpr std::size_t before_size = 8;  // of an object: its number, its users, and nothing

/// Sizes are multiples of 8, as objects begin at multiples of 8.
std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

/// An object of a heap. Only the size of free space includes the bytes of the object's head.
struct Object {
  std::uint64_t at = 0, number = 0, stated = 0;
  bool is_free() const { return number == 0; }
};

/// Walks over the objects of a heap. A few thousand bytes are read at a time.
class HeapWalk {
 public:
  HeapWalk(std::uint64_t address, const ReadBytes& read) : address_(address), read_(read) {
    begin();
  }

  /// Returns the next object, or nothing after the last one and after an error, which problem()
  /// describes.
  std::optional<Object> next();
  const std::string& problem() const { return problem_; }
  /// Returns how many bytes stand before the content of an object.
  std::uint64_t head_bytes() const { return padded(before_size + length_); }
  std::uint64_t content_address(const Object& object) const {
    return address_ + object.at + head_bytes();
  }

 private:
  void begin();
  std::optional<std::uint64_t> number_of_heap(std::uint64_t at, std::size_t width);

  std::uint64_t address_;
  const ReadBytes& read_;
  std::size_t length_ = 0;  // the bytes of a length in this file
  std::uint64_t size_ = 0, at_ = 0;
  std::string problem_;
  std::array<std::byte, 4096> page_{};
  std::uint64_t page_start_ = 0;
  std::size_t page_bytes_ = 0;
};

/// Returns a number of the heap, `at` bytes after its begin.
std::optional<std::uint64_t> HeapWalk::number_of_heap(std::uint64_t at, std::size_t width) {
  if (at < page_start_ || at - page_start_ + width > page_bytes_) {
    page_start_ = at;
    page_bytes_ = std::min<std::uint64_t>(page_.size(), size_ - at);
    if (!read_(address_ + at, std::span(page_).first(page_bytes_))) return {};
  }
  return number_at(std::span(page_).subspan(at - page_start_, width));
}

void HeapWalk::begin() {
  const std::optional<Widths> widths = read_widths(read_);
  if (!widths) {
    problem_ = "its superblock cannot be read";
    return;
  }
  length_ = widths->length;
  at_ = padded(global_heap_signature.size() + length_);
  std::array<std::byte, global_heap_signature.size() + 8> start{};
  const std::span<std::byte> head = std::span(start).first(global_heap_signature.size() + length_);
  if (!read_(address_, head)) {
    problem_ = "a global heap is cut off";
  } else if (!is_global_heap(head)) {
    problem_ = fmt::format("there is no global heap at byte {}", address_);
  } else {
    size_ = number_at(head.subspan(global_heap_signature.size()));
    std::byte last{};
    if (size_ < at_ || size_ - 1 > UINT64_MAX - address_ ||
        !read_(address_ + size_ - 1, {&last, 1})) {
      problem_ = fmt::format("a global heap of {} bytes", size_);
    }
  }
}

std::optional<Object> HeapWalk::next() {
  if (!problem_.empty() || size_ - at_ < head_bytes()) return {};
  const auto number = number_of_heap(at_, 2);
  const auto stated = number_of_heap(at_ + before_size, length_);
  if (!number || !stated) {
    problem_ = "a global heap cannot be read";
    return {};
  }
  const Object object{.at = at_, .number = *number, .stated = *stated};
  const std::uint64_t needed =
      object.is_free() || *stated > size_ ? *stated : head_bytes() + padded(*stated);
  if (needed < head_bytes() || needed > size_ - at_) {
    problem_ = fmt::format("a global heap of {} bytes has an object of {} at byte {}", size_,
                           *stated, at_);
    return {};
  }
  at_ += needed;
  return object;
}

}  // namespace

bool is_global_heap(std::span<const std::byte> bytes) {
  return begins_with(bytes, global_heap_signature);
}

std::string problem_of_global_heap(std::uint64_t address, const ReadBytes& read) {
  HeapWalk walk(address, read);
  while (walk.next()) {
  }
  return walk.problem();
}

std::string read_heap_object(const HeapObject& object, const ReadBytes& read, std::string& text) {
  text.clear();
  if (object.heap == 0 || object.length == 0) return {};
  HeapWalk walk(object.heap, read);
  std::optional<Object> found = walk.next();
  while (found && (found->is_free() || found->number != object.number)) found = walk.next();
  if (!walk.problem().empty()) return walk.problem();
  if (!found) return fmt::format("a global heap has no object {}", object.number);
  if (object.length > found->stated) {
    return fmt::format("a text of {} bytes is in an object of {}", object.length, found->stated);
  }
  text.resize(object.length);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(text.data()), text.size());
  return read(walk.content_address(*found), bytes) ? "" : "a global heap cannot be read";
}

}  // namespace qrtool::hdf5
