// SPDX-License-Identifier: Apache-2.0
// tall_shape.hpp: how the rows of a tall matrix are cut into blocks. The cut depends only on m, n
// and the type, so that a result does not depend on threads, ranks, memory or chunks.
//
//     A      blocks      leaves       nodes ...
//     |      |- b rows -| R           a block has b = block_rows rows, and a leaf has fan_in
//     blocks; |      |- b rows -| R - R       the R of a block is n x n; the R's of a leaf, one
//     below the |      ...              |       other, are again a tall matrix, with blocks of
//     fan_in n rows |      |- b rows -| R   |- R |      |- the rest -| R -       the last block
//     holds the remaining rows
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/batch.hpp"

namespace qrtool {

/// The shape of the tree over an m x n matrix; m and n are positive.
class TallShape {
 public:
  TallShape(index_t m, index_t n)
      : m_(m), n_(n), block_rows_(choose_block_rows(n)), fan_in_(choose_fan_in(n)) {
    blocks_per_leaf_ = is_narrow(n) ? fan_in_ : 1;
  }

  /// A tree whose leaves have leaf_rows >= n rows, for a backend that factors a leaf as one matrix.
  TallShape(index_t m, index_t n, index_t leaf_rows) : TallShape(m, n) {
    block_rows_ = leaf_rows;
    blocks_per_leaf_ = 1;
  }

  index_t m() const { return m_; }
  index_t n() const { return n_; }
  index_t k() const { return std::min(m_, n_); }
  index_t block_rows() const { return block_rows_; }
  /// The number of R factors that a node combines.
  index_t fan_in() const { return fan_in_; }
  /// The rows of the matrix that a node factors: fan_in R factors, one below the other.
  index_t node_rows() const { return fan_in_ * n_; }

  index_t leaf_rows() const { return block_rows_ * blocks_per_leaf_; }
  index_t blocks_per_leaf() const { return blocks_per_leaf_; }
  index_t leaves() const { return (m_ + leaf_rows() - 1) / leaf_rows(); }
  index_t rows_of_leaf(index_t leaf) const {
    return std::min(leaf_rows(), m_ - leaf * leaf_rows());
  }

  /// Returns the number of rows of all R factors, one below the other, if `rows` rows are cut into
  /// blocks of `block_rows` >= n rows.
  index_t stacked_rows(index_t rows, index_t block_rows) const {
    return rows / block_rows * n_ + std::min(rows % block_rows, n_);
  }
  /// Returns the rows of all R factors of the leaves of the whole matrix.
  index_t stacked_rows() const { return stacked_rows(m_, leaf_rows()); }

  /// Whether blocks are narrow enough to be factored together, one per SIMD lane.
  static bool is_narrow(index_t n) { return n <= 128; }

 private:
  /// Sixteen blocks of float32 and their panel need half a MiB, which fits in the cache. A block
  /// has at least 4 n rows, because combining the R factors of smaller ones would cost too much.
  static index_t choose_block_rows(index_t n) {
    return is_narrow(n) ? std::max(9216 / (n + 4) / 16 * 16, 4 * n) : 8 * n;
  }
  static index_t choose_fan_in(index_t n) { return n <= 64 ? 16 : 8; }

  index_t m_, n_, block_rows_, fan_in_, blocks_per_leaf_;
};

}  // namespace qrtool
