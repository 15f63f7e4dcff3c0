// SPDX-License-Identifier: Apache-2.0
// block_qr.hpp: factors the row blocks of one matrix on one thread, several blocks at once where
// they are narrow, and forms the products of which Q consists.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/batch.hpp"
#include "core/cpu/batched/batched_qr.hpp"
#include "core/cpu/blocked/blocked_qr.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "core/matrix/complex.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tall_shape.hpp"

namespace qrtool {

/// Factors matrices of n columns that are cut into blocks of block_rows >= n rows; the last block
/// may be shorter. R has the signs that the reflectors give. Not thread-safe: each thread needs its
/// own object.
template <class T>
class BlockQr {
 public:
  BlockQr(index_t n, index_t block_rows, bool wants_q);

  /// Writes R of every block (min(rows, n) x n) to r, one below the other, and Q of every block to
  /// the block's rows of q. q may be the same memory as a. Returns false if an R exceeds the range
  /// of T.
  bool factor(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> q);

  /// Returns the workspace of one BlockQr on this processor, in bytes.
  static std::size_t workspace_bytes(index_t n, index_t block_rows, bool wants_q);

 private:
  /// The object that factors blocks of one height.
  struct Kind {
    using Single = std::conditional_t<is_complex_number<T>, BlockedQr<T>, EigenQr<T>>;

    explicit Kind(const Problem& problem);
    Problem problem;
    std::optional<BatchedQr<T>> packs;  // narrow
    std::optional<Single> single;       // wide
  };
  bool factor_blocks(Kind& kind, BatchView<const T> a, BatchView<T> r, BatchView<T> q);
  Problem problem_of(index_t rows) const;

  index_t n_, block_rows_;
  bool wants_q_;
  Kind whole_;
  std::optional<Kind> rest_;
  std::vector<batched::Outcome> outcomes_;
};

/// Q := Q Z for the rows of tall matrices. Not thread-safe: each thread needs its own object.
template <class T>
class RowProduct {
 public:
  explicit RowProduct(index_t n);
  static std::size_t workspace_bytes(index_t n);

  /// Multiplies each block of q's rows by its rows of z, of which there are min(rows of the block,
  /// n). A block with p < n rows uses only its first p columns of q.
  void multiply_blocks(MatrixView<T> q, index_t block_rows, MatrixView<const T> z);
  /// Replaces the first z.cols columns of q by the product of its first z.rows columns and z.
  void multiply(MatrixView<T> q, MatrixView<const T> z);

 private:
  MatrixView<const Real<T>> in_real_numbers(MatrixView<const T> z) const;

  index_t n_;
  HostMemory z_, rows_;      // Z padded to whole vectors, and a few rows of Q
  Batch<Real<T>> embedded_;  // a complex Z
};

}  // namespace qrtool
