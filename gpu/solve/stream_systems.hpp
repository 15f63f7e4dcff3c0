// SPDX-License-Identifier: Apache-2.0
// stream_systems.hpp: systems whose arrays are on the device already, in the order of a stream.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/solve/engines/system_device.hpp"
#include "gpu/pipeline/stream_engine.hpp"

namespace qrtool {

/// A (m x n), b (m x p), and the places of x and its standard errors (n x p) of each system;
/// without standard errors their place is null.
struct SystemArrays {
  DeviceMatrices a, b, x, se;
};

/// How the device solves systems of a shape, or why not; the plan is that of R alone, and `route`
/// as in make_system_device().
struct SystemsPlan {
  std::string objection = {};
  Plan factor = {};
  SystemRoute route = SystemRoute::factors;
  std::string variant = {};
};

/// What was found: reports of right sides; findings, which are at the first right side of each
/// system; the systems, ascending, that the device does not solve, whose x, reports and findings
/// mean nothing. With an objection nothing was done.
struct SystemResults {
  std::string objection = {}, variant = {};
  std::vector<SolutionReport> reports = {};
  std::vector<MatrixFindings> findings = {};
  std::vector<index_t> refused = {};
};

/// Solves systems without weights and without missing rows, and returns when this is done.
/// make_plan() is called where the engine has none for the problem and this number of systems and
/// right sides. Errors: DeviceError, LimitError.
template <class T>
SystemResults solve_on_stream(StreamEngine& engine, void* stream, const SolveProblem& problem,
                              const SystemArrays& arrays,
                              const std::function<SystemsPlan()>& make_plan);

}  // namespace qrtool
