// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/batch.hpp"

namespace qrtool {

/// For a list of places in ascending order: calls body(i, count) for each run of places that follow
/// each other without a gap, where i is the index in the list of the first one.
template <class Body>
void for_neighbours(std::span<const index_t> places, Body body) {
  const index_t count = std::ssize(places);
  for (index_t first = 0, end = 0; first < count; first = end) {
    const auto follows = [&](index_t i) {
      const auto at = static_cast<std::size_t>(i);
      return i < count && places[at] == places[at - 1] + 1;
    };
    for (end = first + 1; follows(end);) ++end;
    body(first, end - first);
  }
}

}  // namespace qrtool
