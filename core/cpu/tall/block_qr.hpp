// SPDX-License-Identifier: Apache-2.0
// block_qr.hpp: QR of the row blocks of one matrix on one thread, several blocks at once where they
// are narrow, and the products that put Q together.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/batch.hpp"
#include "core/cpu/batched/batched_qr.hpp"
#include "core/cpu/reference/eigen_qr.hpp"
#include "core/problem.hpp"
#include "core/tall_shape.hpp"

namespace qrtool {

/// Factors matrices of n columns, cut into blocks of block_rows >= n rows; the last may be shorter.
/// R's signs are those of the reflectors. Not thread-safe: one per thread.
template <class T>
class BlockQr {
 public:
  BlockQr(index_t n, index_t block_rows, bool wants_q);

  /// R of every block (min(rows, n) x n), one below the other, into r; Q of every block into the
  /// block's rows of q, which may be those of a. False where an R exceeds the range of T.
  bool factor(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> q);

  /// Of one, on this processor.
  static std::size_t workspace_bytes(index_t n, index_t block_rows, bool wants_q);

 private:
  /// For blocks of one height.
  struct Kind {
    explicit Kind(const Problem& problem);
    Problem problem;
    std::optional<BatchedQr<T>> batched;  // narrow
    std::optional<EigenQr<T>> single;     // wide
  };
  bool factor_blocks(Kind& kind, BatchView<const T> a, BatchView<T> r, BatchView<T> q);
  Problem problem_of(index_t rows) const;

  index_t n_, block_rows_;
  bool wants_q_;
  Kind whole_;
  std::optional<Kind> rest_;
  std::vector<batched::Outcome> outcomes_;
};

/// Q := Q Z for the rows of tall matrices. Not thread-safe: one per thread.
template <class T>
class RowProduct {
 public:
  explicit RowProduct(index_t n);

  /// Block i of q's rows times rows of z that belong to it (min(rows of the block, n)); a block
  /// that is shorter than n fills as many columns of q.
  void multiply_blocks(MatrixView<T> q, index_t block_rows, MatrixView<const T> z);
  /// The first z.rows columns of q times z, into the first z.cols columns.
  void multiply(MatrixView<T> q, MatrixView<const T> z);

 private:
  index_t n_;
  HostMemory z_, rows_;  // Z in whole vectors, a few rows of Q
};

}  // namespace qrtool
