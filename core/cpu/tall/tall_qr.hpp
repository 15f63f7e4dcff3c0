// SPDX-License-Identifier: Apache-2.0
// tall_qr.hpp: cpu/tall: factors the leaves of a tall matrix on several threads, and a whole tall
// matrix in memory.
#pragma once

#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "core/cpu/tall/tall.hpp"

namespace qrtool {

/// Factors leaves on the CPU. A thread takes a few leaves at a time, and in each of them one block
/// of rows per SIMD lane. Results do not depend on the number of threads.
template <class T>
class CpuLeaves final : public LeafQr<T> {
 public:
  /// `needs_q` says that form_q or factor_keeping will be called, too. Without it the leaves may be
  /// factored by another method, which gives only R.
  CpuLeaves(const TallShape& shape, int threads, bool needs_q);
  ~CpuLeaves() override;

  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r) override;
  void form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) override;

  /// Does factor() for a whole matrix and keeps Q in memory, so that it need not be factored again
  /// for form_q(). The Q of every block goes to q, and the Q of every leaf's stack to `kept`
  /// (kept_rows x n).
  LeafOutcome factor_keeping(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> kept,
                             MatrixView<T> q);
  void multiply_kept(MatrixView<T> kept, MatrixView<const T> z, MatrixView<T> q);
  static index_t kept_rows(const TallShape& shape) {
    return shape.stacked_rows(shape.m(), shape.block_rows());
  }

  /// Returns the most bytes that one thread needs.
  static std::size_t workspace_bytes(const TallShape& shape, bool wants_q = true);

 private:
  class Worker;
  template <class Body>
  void for_groups(index_t rows, bool wants_q, Body body);

  TallShape shape_;
  int threads_;
  bool needs_q_;
  std::vector<std::unique_ptr<Worker>> r_workers_, q_workers_;
};

/// Whether leaves must form Q. LAPACK's signs are found from Q's first rows.
inline bool leaves_need_q(const Problem& problem) {
  return problem.wants_q() || problem.sign == Sign::lapack;
}

/// Factors matrices of one shape in memory, with all threads on one matrix.
template <class T>
class TallQr {
 public:
  /// The mode is reduced or r.
  TallQr(const Problem& problem, int threads);

  /// Mode r leaves q as it was. Where the outcome says that an entry is not finite, or that R does
  /// not fit, the factors are undefined.
  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> q, MatrixView<T> r);

  /// Returns the bytes that are needed in addition to A, Q and R with `threads` threads.
  static std::size_t workspace_bytes(const Problem& problem, int threads);

 private:
  Problem problem_;
  TallShape shape_;
  CpuLeaves<T> leaves_;
  TallTree<T> tree_;
  Batch<T> kept_;
};

}  // namespace qrtool
