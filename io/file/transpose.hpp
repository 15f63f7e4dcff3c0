// SPDX-License-Identifier: Apache-2.0
// transpose.hpp: converts between row order and the reversed dimensions of MATLAB, Octave and
// Julia.
#pragma once

#include <algorithm>

#include "core/batch.hpp"

namespace qrtool {

/// out(j, i) := in(i, j). `out` is in.cols x in.rows, and must not overlap with `in`.
template <class T>
void transpose(MatrixView<const T> in, MatrixView<T> out) {
  // A tile of both matrices stays in the first-level cache.
  constexpr index_t tile = 32;
  for (index_t i0 = 0; i0 < in.rows; i0 += tile) {
    const index_t i1 = std::min(i0 + tile, in.rows);
    for (index_t j0 = 0; j0 < in.cols; j0 += tile) {
      const index_t j1 = std::min(j0 + tile, in.cols);
      for (index_t j = j0; j < j1; ++j) {
        for (index_t i = i0; i < i1; ++i) out(j, i) = in(i, j);
      }
    }
  }
}

}  // namespace qrtool
