// SPDX-License-Identifier: Apache-2.0
// timing.hpp: runs one contestant several times and keeps the times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/bench/timing/cases.hpp"
#include "core/batch.hpp"
#include "core/report/report.hpp"
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
  void include(const Accuracy& other);
  double mean() const { return matrices > 0 ? sum / static_cast<double>(matrices) : 0; }
};

/// Factors the same batch again and again.
class TimedRun {
 public:
  virtual ~TimedRun() = default;
  /// Returns the variant that runs, such as "opencl/small", or the name of a library.
  virtual std::string variant() const = 0;
  /// Runs once. Errors: DeviceError, LimitError.
  virtual RunSeconds run() = 0;
  /// Returns the wall time in which prepare() has built the kernels of this run, if it was asked
  /// to.
  virtual double build_seconds() const { return 0; }
  /// Returns the accuracy of the last run; it has no matrices if nothing was measured.
  virtual Accuracy accuracy() const { return {}; }
};

/// The timed runs of the batch from one seed.
struct BatchTiming {
  std::uint64_t seed = 0;
  double median = 0;
  double standard_error = 0;  // of the median, divided by it
  int runs = 0;
  int verified = 0;  // the number of the run whose results were checked, from 1
};

/// All timed runs, in order.
struct Timing {
  std::vector<double> seconds;            // of all batches
  double check_seconds = 0;               // median, of the first batch
  bool is_warm = true;                    // false where the first run is the only one
  std::vector<BatchTiming> batches{};     // empty where nothing but the seconds is known
  std::optional<double> first_seconds{};  // of a run with the build of its kernels, wall time
  Accuracy accuracy{};                    // of the results that were checked

  /// Adds the runs of another batch.
  void include(const Timing& other);
  /// Returns the median over batches of their medians.
  double median() const;
  /// Returns the median of the slowest batch.
  double worst() const;
  /// Returns the largest standard error of any batch.
  double standard_error() const;
  double fastest() const;
  double slowest() const;
  /// Whether one run in twenty, or the slowest of fewer runs, took more than twice the median.
  bool has_outlier() const;
};

/// Returns the middle one, or the mean of the two in the middle. `values` is not empty.
double median_of(std::vector<double> values);

/// Returns half the width of the interval of one standard deviation around the median, which
/// follows from the order of the values alone, divided by the median.
double standard_error_of_median(std::vector<double> values);

/// Actions before and after the runs.
struct Surroundings {
  std::function<void()> before = {};  // each run, outside its time
  std::uint64_t seed = 0;             // of the batch; it chooses the run whose results are checked
  double build_seconds = 0;           // a first run that takes no longer may have built kernels:
                                      // it does not count for the limit
  bool first_run = false;             // the wall time of the first run is kept
};

/// Times `run` as often as `wanted` says, but stops after `limit_seconds` of running time. It makes
/// at least one run, which then counts. Runs beyond wanted.timed end when the standard error of the
/// median is below most_standard_error, or after a tenth of `limit_seconds` of wall time.
Timing time_runs(TimedRun& run, const Repeats& wanted, double limit_seconds,
                 const Surroundings& around = {});
inline constexpr double most_standard_error = 0.01;

}  // namespace qrtool
