// SPDX-License-Identifier: Apache-2.0
// tall_qr.hpp: cpu/tall: the leaves of a tall matrix on several threads, and all of it in memory.
#pragma once

#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "core/tall.hpp"

namespace qrtool {

/// Leaves on the CPU: a thread takes a few at a time, and in each of them a block of rows per SIMD
/// lane. Results do not depend on the number of threads.
template <class T>
class CpuLeaves final : public LeafQr<T> {
 public:
  /// `needs_q`: form_q and factor_keeping are called, too. For R alone the leaves may be factored
  /// in another way.
  CpuLeaves(const TallShape& shape, int threads, bool needs_q);
  ~CpuLeaves() override;

  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r) override;
  void form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) override;

  /// factor() and form_q() for a whole matrix with Q in memory in between, which saves factoring
  /// twice: the Q of every block goes to q, the Q of every leaf's stack (kept_rows x n) to `kept`.
  LeafOutcome factor_keeping(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> kept,
                             MatrixView<T> q);
  void multiply_kept(MatrixView<T> kept, MatrixView<const T> z, MatrixView<T> q);
  static index_t kept_rows(const TallShape& shape) {
    return shape.stacked_rows(shape.m(), shape.block_rows());
  }

  /// One thread's, at the most.
  static std::size_t workspace_bytes(const TallShape& shape);

 private:
  class Worker;
  template <class Body>
  void for_groups(index_t rows, bool wants_q, Body body);

  TallShape shape_;
  int threads_;
  bool needs_q_;
  std::vector<std::unique_ptr<Worker>> r_workers_, q_workers_;
};

/// Whether leaves give R alone: LAPACK's signs are those of Q's first rows.
inline bool leaves_need_q(const Problem& problem) {
  return problem.wants_q() || problem.sign == Sign::lapack;
}

/// QR of matrices of one shape that are in memory, with all threads on one matrix.
template <class T>
class TallQr {
 public:
  /// mode reduced or r.
  TallQr(const Problem& problem, int threads);

  /// q is not touched for mode r. Where the outcome's magnitude is not finite, or R does not fit,
  /// the factors hold nothing of meaning.
  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> q, MatrixView<T> r);

  /// Beside A, Q and R, with that many threads.
  static std::size_t workspace_bytes(const Problem& problem, int threads);

 private:
  Problem problem_;
  TallShape shape_;
  CpuLeaves<T> leaves_;
  TallTree<T> tree_;
  Batch<T> kept_;
};

}  // namespace qrtool
