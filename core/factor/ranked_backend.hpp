// SPDX-License-Identifier: Apache-2.0
// ranked_backend.hpp: puts rank, condition and pivoted columns behind the factors of another
// backend. They come from R alone (core/factor/rank_and_order.hpp), so that they work after every
// route.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend/backend.hpp"
#include "core/factor/second_try.hpp"

namespace qrtool {

/// Adds problem.pivots and problem.wants_condition on the host. Without them it is the inner
/// backend. Factors with pivoted columns are measured again, as factors of A[:, P].
class RankedBackend final : public BackendAround {
 public:
  /// `backend` must outlive this object.
  explicit RankedBackend(SecondTry& backend);
  ~RankedBackend() override;

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

 private:
  template <class T>
  class Worker;
  struct Workers;
  template <class T>
  ChunkSeconds factor_and_rank(const Plan& plan, const ChunkToFactor<T>& chunk);
  template <class T>
  ChunkSeconds decide_by_reflectors(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                                    std::span<MatrixReport> report);
  template <class T>
  std::vector<Worker<T>>& workers(const Plan& plan);

  Reflectors& reflectors_;
  std::unique_ptr<Workers> workers_;  // made with the first chunk
};

}  // namespace qrtool
