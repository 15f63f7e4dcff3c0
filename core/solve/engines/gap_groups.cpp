// SPDX-License-Identifier: Apache-2.0
// gap_groups.cpp: sorts by mask, and cuts.
#include "core/solve/engines/gap_groups.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace qrtool {
namespace {

/// Returns the numbers of the right sides, sorted so that right sides with equal masks are
/// neighbours.
std::vector<std::size_t> sort_by_mask(std::size_t sides, const GapMasks& masks) {
  std::vector<std::size_t> order(sides);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t g, std::size_t h) {
    return std::ranges::lexicographical_compare(masks[g], masks[h]);
  });
  return order;
}

}  // namespace

std::vector<std::span<const index_t>> group_by_mask(std::vector<index_t>& gaps,
                                                    const GapMasks& masks, std::size_t lanes,
                                                    std::size_t most) {
  const std::vector<std::size_t> order = sort_by_mask(gaps.size(), masks);
  std::vector<index_t> sorted, single, same;
  std::vector<std::size_t> ends;  // of the groups in `sorted`
  // Appends sides to `sorted` in groups of at most `size`.
  const auto append = [&](std::span<const index_t> sides, std::size_t size) {
    for (std::size_t first = 0; first < sides.size(); first += size) {
      const auto part = sides.subspan(first, std::min(size, sides.size() - first));
      sorted.insert(sorted.end(), part.begin(), part.end());
      ends.push_back(sorted.size());
    }
  };
  // Masks that many right sides have come first, and then all others.
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    same.clear();
    for (; end < order.size() && std::ranges::equal(masks[order[first]], masks[order[end]]); ++end)
      same.push_back(gaps[order[end]]);
    if (same.size() >= 2 * lanes) {
      append(same, most);
    } else {
      single.insert(single.end(), same.begin(), same.end());
    }
  }
  std::sort(single.begin(), single.end());
  append(single, lanes);
  gaps = std::move(sorted);

  std::vector<std::span<const index_t>> groups;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    groups.push_back(std::span(gaps).subspan(first, end - first));
    first = end;
  }
  return groups;
}

}  // namespace qrtool
