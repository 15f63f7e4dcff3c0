// SPDX-License-Identifier: Apache-2.0
// baselines.hpp: the contestants that are timed: the tool itself and its baselines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/timing/cases.hpp"
#include "app/bench/timing/timing.hpp"
#include "core/backend/backend.hpp"
#include "core/matrix/matrices.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// A contestant is one column of the table: the tool itself or a baseline.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual std::string name() const = 0;  // heading: "eigen"
  virtual std::string text() const = 0;  // its description in the header
  /// Makes the matrices of `request`; for least squares only the seed counts. Only the tool on the
  /// CPU uses `threads`; 0 means as many as it may use. Errors: every class of core/error.hpp;
  /// what() says why the cell stays empty.
  virtual std::unique_ptr<TimedRun> prepare(const Problem& problem, const MatrixRequest& request,
                                            int threads) = 0;
};

/// The inputs that all contestants share. The backend outlives them.
struct BenchSetup {
  Backend& backend;     // the tool's
  std::string variant;  // forced, or empty
  Limits limits;        // host memory and threads
  std::uint64_t seed = 0;
  BenchTask task = BenchTask::factor;
  double ridge = 0;           // of least squares
  bool builds_first = false;  // the kernels of a case, and says how long that takes
};

/// Makes the tool: on an OpenCL device, with data that stay there, or on the CPU.
std::unique_ptr<Contestant> make_tool(const BenchSetup& setup);

/// Every variant of the tool's backend that a plan may choose for this type, each forced on all
/// cases.
std::vector<std::unique_ptr<Contestant>> make_variants(const BenchSetup& setup, ElementType type);

/// Runs of one shape and type by any variant of the tool. Those on a device share their matrices.
class SampleRuns {
 public:
  virtual ~SampleRuns() = default;
  /// Times the first problem.count matrices. On the CPU two threads work on them, whether a variant
  /// lets them share a matrix or not. Errors: UsageError if the variant cannot run the problem,
  /// LimitError if there is no room, DeviceError.
  virtual std::unique_ptr<TimedRun> prepare(std::string_view variant, const Problem& problem) = 0;
};
/// `most`: the shape and type, and the largest number of matrices.
std::unique_ptr<SampleRuns> make_sample_runs(const BenchSetup& setup, const Problem& most);

/// A contestant that the tool can be compared with.
struct Baseline {
  std::string_view name;
  bool solves = false;        // least squares; false: factors
  bool is_on_device = false;  // of the tool
  bool takes_complex = false;
  std::unique_ptr<Contestant> (*make)(const BenchSetup& setup);
};
std::span<const Baseline> baselines();
/// Returns null if there is none of this name.
const Baseline* find_baseline(std::string_view name);

/// The baselines by which a sweep judges the choice of --backend auto: the CPU, and the device with
/// copies.
inline constexpr std::string_view cpu_baseline = "cpu", from_host_baseline = "from-host";
inline constexpr std::string_view baselines_of_choice[] = {cpu_baseline, from_host_baseline};

/// --against, or by default Eigen, which every build has, and gels for least squares.
std::vector<const Baseline*> baselines_of(const BenchOptions& options);

}  // namespace qrtool
