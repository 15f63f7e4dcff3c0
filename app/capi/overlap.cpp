// SPDX-License-Identifier: Apache-2.0
// overlap.cpp: compares the bytes of two arrays, from the largest stride down.
#include "app/capi/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace qrtool::capi {

Footprint::Footprint(const char* name, const void* data, std::size_t bytes,
                     const Dimensions& dimensions)
    : name_(name), first_(reinterpret_cast<std::intptr_t>(data)) {
  Dimensions sorted = dimensions;
  for (Dimension& d : sorted) {
    if (data == nullptr || d.count == 0) return;
    if (d.count == 1) d.stride = 0;
    index_t reached = 0;
    if (__builtin_mul_overflow(d.stride, static_cast<index_t>(bytes), &d.stride) ||
        __builtin_mul_overflow(d.stride, 4 * d.count, &reached))
      throw UsageError(fmt::format("{}: its strides reach beyond any memory", name));
    if (d.stride < 0) first_ += (d.count - 1) * d.stride;
    d.stride = std::abs(d.stride);
  }
  run_ = static_cast<index_t>(bytes);
  std::ranges::sort(sorted, {}, &Dimension::stride);
  for (const Dimension& d : sorted) {
    if (d.stride == 0) continue;
    if (number_ == 0 && d.stride <= run_)
      run_ += (d.count - 1) * d.stride;
    else
      dimensions_[number_++] = d;
  }
  std::reverse(dimensions_.begin(), dimensions_.begin() + static_cast<index_t>(number_));
}

/// Returns the bytes from the first to the last of a part.
index_t Footprint::reach(std::size_t next) const {
  index_t bytes = run_;
  for (; next < number_; ++next) bytes += (dimensions_[next].count - 1) * dimensions_[next].stride;
  return bytes;
}

/// Two parts with the same stride share memory if one slice of one shares memory with one slice of
/// the other; only the difference of their numbers matters. Parts with different strides are
/// compared slice by slice of the longer one.
bool Footprint::share(const Part& part, const Footprint& other, const Part& its_part) const {
  const index_t bytes = reach(part.next), its_bytes = other.reach(its_part.next);
  if (part.first >= its_part.first + its_bytes || its_part.first >= part.first + bytes)
    return false;
  const bool is_run = part.next == number_, is_its_run = its_part.next == other.number_;
  if (is_run && is_its_run) return true;
  if (is_run || (!is_its_run && its_bytes > bytes)) return other.share(its_part, *this, part);
  const Dimension d = dimensions_[part.next];
  const bool is_like = !is_its_run && other.dimensions_[its_part.next].stride == d.stride;
  const std::size_t its_next = is_like ? its_part.next + 1 : its_part.next;
  const index_t before = is_like ? other.dimensions_[its_part.next].count - 1 : 0;
  // Slices from `least` to `most` reach the other part, or its first slice.
  const index_t slice = reach(part.next + 1), its_slice = other.reach(its_next);
  const index_t distance = its_part.first - part.first;
  const auto quotient = [&](index_t number) {  // rounded down
    return number / d.stride - (number % d.stride < 0 ? 1 : 0);
  };
  const index_t least = std::max(-before, quotient(distance - slice) + 1);
  const index_t most = std::min(d.count - 1, quotient(distance + its_slice - 1));
  for (index_t i = least; i <= most; ++i)
    if (share({part.first + i * d.stride, part.next + 1}, other, {its_part.first, its_next}))
      return true;
  return false;
}

bool Footprint::shares_memory_with(const Footprint& other) const {
  return run_ > 0 && other.run_ > 0 && share({first_, 0}, other, {other.first_, 0});
}

void require_apart(std::span<const Footprint> outputs, std::span<const Footprint> inputs) {
  const auto require = [](const Footprint& output, const Footprint& other) {
    if (output.shares_memory_with(other))
      throw UsageError(fmt::format("{} shares memory with {}; give it memory of its own",
                                   output.name(), other.name()));
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const Footprint& input : inputs) require(outputs[i], input);
    for (const Footprint& before : outputs.first(i)) require(outputs[i], before);
  }
}

}  // namespace qrtool::capi
