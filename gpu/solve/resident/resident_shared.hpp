// SPDX-License-Identifier: Apache-2.0
// resident_shared.hpp: right sides of one matrix that stay on the device, for measurements.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/solve/engines/system_device.hpp"
#include "gpu/common/shapes.clh"
#include "gpu/pipeline/opencl_backend.hpp"

namespace qrtool {

/// Solves for right sides that are uploaded once, any number of times.
template <class T>
class ResidentShared {
 public:
  struct Seconds {
    double solve = 0, check = 0;
  };

  /// Uploads some right sides b, in rows of m, and repeats them up to `count`, in this layout.
  /// backend and problem outlive the run. Errors: DeviceError, LimitError.
  ResidentShared(OpenclBackend& backend, const SolveProblem& problem, const SharedFactors& factors,
                 std::span<const T> b, index_t count, SidesLayout layout);
  ~ResidentShared();

  /// Overwrites the last results with NaN, solves and checks. Returns when the device has finished.
  Seconds run();
  /// What the check of the last run found. NaN or above the bar: the device does not answer.
  std::vector<SolutionErrors> errors() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qrtool
