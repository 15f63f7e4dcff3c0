// SPDX-License-Identifier: Apache-2.0
// chunk.hpp: what one buffer of the pipeline holds.
#pragma once

#include "core/batch.hpp"

namespace qrtool {

/// `count` matrices from number `first` on, or as many rows of one matrix, with their factors and
/// with the results of measuring them. A part that a run does not need stays empty. The buffers may
/// be larger than what they hold: the last chunk of a run is often shorter.
template <class T, class Findings>
struct Chunk {
  index_t first = 0, count = 0;
  Batch<T> a, q, r, v, tau;
  Batch<double> p;  // the numbers of P
  Findings found;

  /// The matrices that a part holds.
  template <class U>
  BatchView<U> matrices(const Batch<U>& part) const {
    return part.view().slice(0, count);
  }
  /// The rows that a part holds.
  MatrixView<T> rows(const Batch<T>& part) const { return part.view()[0].row_block(0, count); }
};

}  // namespace qrtool
