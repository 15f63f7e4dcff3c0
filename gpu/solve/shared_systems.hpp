// SPDX-License-Identifier: Apache-2.0
// shared_systems.hpp: many right sides of one matrix on an OpenCL device, in sub-chunks that are
// uploaded, solved, checked and downloaded beside each other. The CPU has factored the matrix.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/solve/system_device.hpp"
#include "gpu/gpu_variant.hpp"
#include "gpu/host/opencl_backend.hpp"

namespace qrtool {

/// The defines of shared.cl, or of masked.cl, for x and for the check.
struct SharedParams {
  SharedParams(const SolveProblem& problem, SidesLayout layout, bool weighs);
  Params solve, check;
};

/// Why the device does not solve such problems; empty where it does. `side_by_side`: the right
/// sides of a column layout in one matrix; 0 for rows.
std::string shared_objection(const SolveProblem& problem, index_t side_by_side,
                             const Limits& limits);

/// `a` (m x n, packed) is the matrix that `factors` are of; these are copied. `layout` is that of
/// all blocks. backend, problem and a outlive the device.
template <class T>
std::unique_ptr<SharedDevice<T>> make_shared_device(OpenclBackend& backend,
                                                    const SolveProblem& problem,
                                                    MatrixView<const T> a,
                                                    const SharedFactors& factors,
                                                    SidesLayout layout);

/// Right sides that stay on the device, for measurements.
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
