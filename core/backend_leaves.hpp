// SPDX-License-Identifier: Apache-2.0
// backend_leaves.hpp: the leaves of a tall matrix on any backend, each as a matrix of its own.
#pragma once

#include <optional>

#include "core/backend.hpp"
#include "core/tall.hpp"

namespace qrtool {

/// Leaves by Backend::factor, with R_ii >= 0, so that the two passes agree; the products Q_i Z_i on
/// the CPU.
template <class T>
class BackendLeaves final : public LeafQr<T> {
 public:
  /// `problem`: the whole matrix. `backend` must outlive the leaves.
  BackendLeaves(Backend& backend, const Problem& problem, const TallShape& shape, int threads);

  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r) override;
  void form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) override;

 private:
  const Plan& plan_for(index_t rows);
  /// R of one leaf to r, and Q_i to q_.
  MatrixReport factor_leaf(MatrixView<const T> a, MatrixView<T> r);

  Backend& backend_;
  Problem problem_;
  TallShape shape_;
  int threads_;
  std::optional<Plan> whole_, rest_;  // of a leaf, of the last and shorter one
  Batch<T> q_, r_;
};

}  // namespace qrtool
