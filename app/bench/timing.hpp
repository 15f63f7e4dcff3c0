// SPDX-License-Identifier: Apache-2.0
// timing.hpp: runs one contestant several times and keeps the times.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "app/bench/cases.hpp"
#include "core/batch.hpp"
#include "core/report.hpp"
#include "core/solve/system_solver.hpp"

namespace qrtool {

/// The times of one run over a batch.
struct RunSeconds {
  double factor = 0, check = 0;
};

/// The accuracy of a batch: ||QR - A||_F, or the backward error of x, how many matrices failed, and
/// the routes that the matrices took.
struct Accuracy {
  index_t matrices = 0, failed = 0;
  index_t left_to_cpu = 0;  // systems that the device does not answer for
  double sum = 0, worst = 0;
  RouteCounts routes = {};

  /// `norm`: ||A||_F.
  void add(const MatrixReport& line, double norm);
  void add(const SolutionReport& line);
  void add_error(double error, Status status);
  double mean() const { return matrices > 0 ? sum / static_cast<double>(matrices) : 0; }
};

/// Factors the same batch again and again.
class TimedRun {
 public:
  virtual ~TimedRun() = default;
  /// Returns the variant that runs, such as "opencl/small", or the name of a library.
  virtual std::string variant() const = 0;
  /// Errors: DeviceError, LimitError.
  virtual RunSeconds run() = 0;
  /// Makes a run and copies the first bytes of the first matrix's R into all of `to`. Returns the
  /// seconds until then, without the check; where data is on a device, as wall time.
  /// Errors: DeviceError.
  virtual double run_to_r(std::span<std::byte> to);
  /// The accuracy of the last run, of no matrices where nothing was measured.
  virtual Accuracy accuracy() const { return {}; }
  /// Copies R of the first matrix after a run. Baselines need not do it. Errors: DeviceError.
  virtual void copy_r(std::span<std::byte>) const {}
};

/// Fills `to` with the first bytes of `batch`, as copy_r() does with R.
template <class T>
void copy_first_bytes(const Batch<T>& batch, std::span<std::byte> to) {
  std::memcpy(to.data(), batch.view().data, to.size());
}

/// Every timed run, in order.
struct Timing {
  std::vector<double> seconds;
  double check_seconds = 0;  // median
  bool is_warm = true;       // false where the first run is the only one

  double median() const;
  double fastest() const;
  double slowest() const;
  /// Whether the slowest run took more than twice the median.
  bool has_outlier() const { return slowest() > 2 * median(); }
};

/// The middle one, or the mean of the two in the middle. `values` is not empty.
double median_of(std::vector<double> values);

/// Times `run` as often as `wanted` says, but stops after `limit_seconds` of running time. It makes
/// at least one run, which then counts.
Timing time_runs(TimedRun& run, const Repeats& wanted, double limit_seconds);

}  // namespace qrtool
