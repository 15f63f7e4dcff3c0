// SPDX-License-Identifier: Apache-2.0
// sample.hpp: verdicts on the solutions of a device. The host checks some that they accept, with an
// R of its own.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "gpu/common/shapes.clh"

namespace qrtool {

/// Some systems of a block, with `sides` right sides each, and the findings of the device.
struct SystemFindings {
  index_t first, count, sides;
  std::span<const SolutionErrors> errors;   // of right sides
  std::span<const FactorFindings> factors;  // of systems; empty: they go into no report
  std::span<const int> left_out;            // rows of systems that do not count; empty: none
  std::span<const double> least_norms;      // errors, of right sides of wide systems
  double freedom;                           // where no row is left out
  bool has_ridge_rows;                      // which count in the norms of residuals
};

/// Writes the reports. Returns for each system whether it is accepted: whether the check has
/// accepted all of its right sides. The block needs x only for the norms with a ridge.
template <class T>
std::vector<char> judge_systems(const SolveProblem& problem, const SystemFindings& found,
                                const RightSideBlock<T>& block);

template <class T>
class SystemSample {
 public:
  SystemSample(const SolveProblem& problem, int threads);
  ~SystemSample();

  /// Writes the reports. Returns the systems that are refused: those with a right side that the
  /// check has not accepted, and all where the host comes to another verdict on one of its sample.
  std::vector<index_t> judge(const SystemFindings& found, BatchView<const T> a,
                             const RightSideBlock<T>& block);

 private:
  /// The engine that checks the samples; the first sample makes it, for its number of right sides.
  struct Examiner;
  Examiner& examiner_for(index_t sides);
  /// Checks the first, the last and some of the systems between them (tuning::host_sample_step),
  /// which have `sides` right sides each. False where one of their solutions does not pass. True
  /// without a look where the host's budget for such checks is used up, or a matrix is too large.
  bool agrees(BatchView<const T> a, const RightSideBlock<T>& block, index_t sides,
              std::span<const index_t> systems);

  SolveProblem problem_;  // only checks
  Limits limits_;
  double operations_left_;
  std::unique_ptr<Examiner> examiner_;
};

}  // namespace qrtool
