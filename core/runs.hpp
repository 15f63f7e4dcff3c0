// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/batch.hpp"

namespace qrtool {

/// Calls read(i, place(i), count) for each run of the items 0 .. all - 1 whose places lie `step`
/// apart.
template <class Place, class Read>
void for_runs(index_t all, index_t step, Place place, Read read) {
  for (index_t i = 0, count = 1; i < all; i += count) {
    const index_t first = place(i);
    for (count = 1; i + count < all && place(i + count) == first + count * step; ++count) {
    }
    read(i, first, count);
  }
}

}  // namespace qrtool
