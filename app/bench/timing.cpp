// SPDX-License-Identifier: Apache-2.0
// timing.cpp: warms up, repeats a run and takes the median.
#include "app/bench/timing.hpp"

#include <algorithm>
#include <cmath>

#include "app/run/stopwatch.hpp"

namespace qrtool {

void Accuracy::add(const MatrixReport& line, double norm) {
  routes.include(line);
  add_error(line.residual * norm, line.status);
}

void Accuracy::add(const SolutionReport& line) { add_error(line.backward_error, line.status); }

void Accuracy::add_error(double error, Status status) {
  ++matrices;
  if (status != Status::ok && status != Status::unchecked) ++failed;
  sum += error;
  if (std::isnan(error) || error > worst) worst = error;  // once NaN, always NaN
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double TimedRun::run_to_r(std::span<std::byte> to) {
  const double seconds = run().factor;
  const Stopwatch watch;
  copy_r(to);
  return seconds + watch.seconds();
}

double Timing::median() const { return median_of(seconds); }
double Timing::fastest() const { return *std::min_element(seconds.begin(), seconds.end()); }
double Timing::slowest() const { return *std::max_element(seconds.begin(), seconds.end()); }

Timing time_runs(TimedRun& run, const Repeats& wanted, double limit_seconds) {
  // The limit applies to the times that the runs report, without the time in which the first run of
  // a shape compiles its kernels.
  double spent = 0, last = 0;
  int runs = 0;
  RunSeconds seconds;
  const auto run_once = [&] {
    seconds = run.run();
    last = seconds.factor + seconds.check;
    spent += last;
    ++runs;
  };
  const auto has_time = [&] { return spent + last <= limit_seconds; };

  for (int i = 0; i < wanted.warm_up && has_time(); ++i) run_once();
  Timing timing;
  std::vector<double> checks;
  const auto keep = [&] {
    timing.seconds.push_back(seconds.factor);
    checks.push_back(seconds.check);
  };
  for (int i = 0; i < wanted.timed && has_time(); ++i) {
    run_once();
    keep();
  }
  if (timing.seconds.empty()) {
    if (runs == 0) run_once();
    keep();
  }
  timing.is_warm = runs > 1;
  timing.check_seconds = median_of(checks);
  return timing;
}

}  // namespace qrtool
