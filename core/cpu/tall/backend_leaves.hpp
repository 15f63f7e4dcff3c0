// SPDX-License-Identifier: Apache-2.0
// backend_leaves.hpp: factors the leaves of a tall matrix on any backend, each leaf as a separate
// matrix.
#pragma once

#include <optional>

#include "core/backend/backend.hpp"
#include "core/cpu/tall/tall.hpp"

namespace qrtool {

/// Factors leaves with Backend::factor and forms the products Q_i Z_i on the CPU. R_ii >= 0, so
/// that both passes over A get the same Q_i.
template <class T>
class BackendLeaves final : public LeafQr<T> {
 public:
  /// `problem` is the problem of the whole matrix. `backend` must outlive this object.
  BackendLeaves(Backend& backend, const Problem& problem, const TallShape& shape, int threads);

  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r) override;
  void form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) override;

 private:
  const Plan& plan_for(index_t rows);
  /// Writes R_i of one leaf to r, and Q_i to q_.
  MatrixReport factor_leaf(MatrixView<const T> a, MatrixView<T> r);

  Backend& backend_;
  Problem problem_;
  TallShape shape_;
  int threads_;
  std::optional<Plan> whole_, rest_;  // the plan of a leaf, and of the last and shorter leaf
  Batch<T> q_, r_;
};

}  // namespace qrtool
