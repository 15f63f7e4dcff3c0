// SPDX-License-Identifier: Apache-2.0
// tall_shape.hpp: how the rows of a tall matrix are cut. Everything follows from m, n and the type,
// so a result does not depend on threads, ranks, memory or chunks.
//
//     A      blocks      leaves       nodes ...
//     |      |- b rows -| R           a block holds b = block_rows rows; a leaf holds fan_in blocks
//     |      |- b rows -| R - R       a block's R is n x n, the R's of a leaf stand one below the
//     |      ...              |       other: again a tall matrix, cut into blocks of fan_in n rows
//     |      |- b rows -| R   |- R
//     |      |- the rest -| R -       the last block is what is left, with any number of rows
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/batch.hpp"

namespace qrtool {

/// Shape of the tree over an m x n matrix, m and n positive.
class TallShape {
 public:
  TallShape(index_t m, index_t n)
      : m_(m), n_(n), block_rows_(choose_block_rows(n)), fan_in_(choose_fan_in(n)) {
    blocks_per_leaf_ = is_narrow(n) ? fan_in_ : 1;
  }

  /// With leaves of leaf_rows >= n rows, for a backend that factors each as one matrix.
  TallShape(index_t m, index_t n, index_t leaf_rows) : TallShape(m, n) {
    block_rows_ = leaf_rows;
    blocks_per_leaf_ = 1;
  }

  index_t m() const { return m_; }
  index_t n() const { return n_; }
  index_t k() const { return std::min(m_, n_); }
  index_t block_rows() const { return block_rows_; }
  /// R factors that a node combines.
  index_t fan_in() const { return fan_in_; }
  /// Rows of the matrix that a node factors: fan_in R factors one below the other.
  index_t node_rows() const { return fan_in_ * n_; }

  index_t leaf_rows() const { return block_rows_ * blocks_per_leaf_; }
  index_t blocks_per_leaf() const { return blocks_per_leaf_; }
  index_t leaves() const { return (m_ + leaf_rows() - 1) / leaf_rows(); }
  index_t rows_of_leaf(index_t leaf) const {
    return std::min(leaf_rows(), m_ - leaf * leaf_rows());
  }

  /// Rows of the R factors of `rows` rows that are cut into blocks of `block_rows` >= n.
  index_t stacked_rows(index_t rows, index_t block_rows) const {
    return rows / block_rows * n_ + std::min(rows % block_rows, n_);
  }
  /// Rows of all the leaves' R factors, one below the other.
  index_t stacked_rows() const { return stacked_rows(m_, leaf_rows()); }

  /// Narrow enough for one block per SIMD lane; wider blocks are factored one by one.
  static bool is_narrow(index_t n) { return n <= 128; }

 private:
  /// A pack of 16 blocks of float32 and its panel take half a MiB where that leaves 4 n rows: less
  /// would make the R factors a large part of the work, more would leave the cache.
  static index_t choose_block_rows(index_t n) {
    return is_narrow(n) ? std::max(9216 / (n + 4) / 16 * 16, 4 * n) : 8 * n;
  }
  static index_t choose_fan_in(index_t n) { return n <= 64 ? 16 : 8; }

  index_t m_, n_, block_rows_, fan_in_, blocks_per_leaf_;
};

}  // namespace qrtool
