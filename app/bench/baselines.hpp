// SPDX-License-Identifier: Apache-2.0
// baselines.hpp: who is timed: the tool itself, and what it is compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "app/bench/timing.hpp"
#include "core/backend.hpp"
#include "core/problem.hpp"

namespace qrtool {

/// One column of the table.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual std::string name() const = 0;  // heading: "eigen"
  virtual std::string text() const = 0;  // what it is, for the header
  /// `threads`: of the tool on the CPU, 0 for as many as it may use; others do not look at it.
  /// Errors: every class of core/error.hpp; what() says why the cell stays empty.
  virtual std::unique_ptr<TimedRun> prepare(const Problem& problem, int threads) = 0;
};

/// What all contestants share. The backend and its memory outlive them.
struct BenchSetup {
  Backend& backend;        // the tool's
  std::string variant;     // forced, or empty
  Limits limits;           // host memory and threads
  std::uint64_t seed = 0;  // of this rank
};

/// The tool: on an OpenCL device with the data resident there, else on the CPU.
std::unique_ptr<Contestant> make_tool(const BenchSetup& setup);

/// What the tool can be compared with.
struct Baseline {
  std::string_view name;
  std::unique_ptr<Contestant> (*make)(const BenchSetup& setup);
};
std::span<const Baseline> baselines();

}  // namespace qrtool
