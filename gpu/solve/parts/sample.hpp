// SPDX-License-Identifier: Apache-2.0
// sample.hpp: the host checks some of the solutions that a device has accepted, with an R of its
// own.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/system_engine.hpp"

namespace qrtool {

template <class T>
class SystemSample {
 public:
  SystemSample(const SolveProblem& problem, int threads);
  ~SystemSample();

  /// Checks the first, the last and some of the systems between them (tuning::host_sample_step),
  /// which have `sides` right sides each. False where one of their solutions does not pass. True
  /// without a look where the host's budget for such checks is used up, or a matrix is too large.
  bool agrees(BatchView<const T> a, const RightSideBlock<T>& block, index_t sides,
              std::span<const index_t> systems);

 private:
  /// The engine that checks the samples; the first sample makes it, for its number of right sides.
  struct Examiner;
  Examiner& examiner_for(index_t sides);

  SolveProblem problem_;  // only checks
  Limits limits_;
  double operations_left_;
  std::unique_ptr<Examiner> examiner_;
};

}  // namespace qrtool
