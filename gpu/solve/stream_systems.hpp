// SPDX-License-Identifier: Apache-2.0
// stream_systems.hpp: systems whose arrays are on the device already, in the order of a stream.
#pragma once

#include <vector>

#include "core/solve/engines/system_device.hpp"
#include "gpu/pipeline/stream_engine.hpp"

namespace qrtool {

/// A (m x n), b (m x p), and the places of x and its standard errors (n x p) of each system;
/// without standard errors their place is null.
struct SystemArrays {
  DeviceMatrices a, b, x, se;
};

/// What was found: reports of right sides; findings of systems; the systems, ascending, that the
/// device does not solve, whose x, reports and findings mean nothing.
struct SystemResults {
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
  std::vector<index_t> refused;
};

/// Solves systems without weights and without missing rows, and returns when this is done. `factor`
/// is the plan of R alone, `route` as in make_system_device(). Errors: DeviceError, LimitError.
template <class T>
SystemResults solve_on_stream(StreamEngine& engine, void* stream, const SolveProblem& problem,
                              const Plan& factor, SystemRoute route, const SystemArrays& arrays);

}  // namespace qrtool
