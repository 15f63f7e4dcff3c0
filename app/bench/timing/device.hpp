// SPDX-License-Identifier: Apache-2.0
// device.hpp: a batch that stays on an OpenCL device. device.cpp is built with the gpu
// layer, no_device.cpp without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/timing/timing.hpp"
#include "core/backend/backend.hpp"
#include "core/matrix/matrices.hpp"
#include "core/solve/engines/system_device.hpp"

namespace qrtool {

/// Uploads plan.problem.count matrices to the device of `backend`, which is an OpenCL backend.
/// `build_seconds`: the time in which its kernels were built. Errors: DeviceError, LimitError.
std::unique_ptr<TimedRun> make_resident_run(Backend& backend, Plan plan,
                                            const MatrixRequest& request, double build_seconds);

/// Batches of one shape and type that are drawn once.
class ResidentBatches {
 public:
  virtual ~ResidentBatches() = default;
  /// Uploads the first plan.problem.count matrices. Errors: DeviceError, LimitError.
  virtual std::unique_ptr<TimedRun> run_of(Plan plan) = 0;
};
/// `most`: the shape and type, and the largest number of matrices.
std::unique_ptr<ResidentBatches> make_resident_batches(Backend& backend, const Problem& most,
                                                       std::uint64_t seed);

/// Makes a run of least squares with resident data: one right side for each of plan.problem.count
/// matrices, whose R the plan computes (factored_on_device) unless x comes from normal equations;
/// or one matrix for all right sides, each of which has its own weights. `body`: the way to get x
/// by normal equations (SampledBody::body), or empty for the way that `solve` uses.
std::unique_ptr<TimedRun> make_resident_systems(Backend& backend, Plan plan,
                                                const SolveProblem& problem, SystemRoute route,
                                                std::uint64_t seed, std::string_view body = {});

/// A way to get x by normal equations, and its name in a table of costs.
struct SampledBody {
  std::string_view body;
  std::string name;
};
/// Returns the ways between which the table decides for such systems; none if there are fewer than
/// two.
std::vector<SampledBody> sampled_bodies(const Backend& backend, const SolveProblem& problem);

/// Makes a run with resident data of one matrix of problem.m x problem.n and `sides` right sides.
std::unique_ptr<TimedRun> make_resident_shared(Backend& backend, const SolveProblem& problem,
                                               index_t sides, std::uint64_t seed);

/// Returns bytes per second that the device of `backend`, which is an OpenCL backend, moves in a
/// copy of `bytes`. Errors: DeviceError.
double device_rate(Backend& backend, std::size_t bytes);

/// Empties the caches of the device of `backend`, which is an OpenCL backend. Errors: DeviceError.
void flush_device(Backend& backend);

}  // namespace qrtool
