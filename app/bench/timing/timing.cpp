// SPDX-License-Identifier: Apache-2.0
// timing.cpp: warms up, repeats a run and takes the median.
#include "app/bench/timing/timing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/process/stopwatch.hpp"
#include "core/matrix/matrices.hpp"

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

void Accuracy::include(const Accuracy& other) {
  for (const auto route :
       {&RouteCounts::only, &RouteCounts::first_pass, &RouteCounts::second_pass,
        &RouteCounts::further_passes, &RouteCounts::reflectors, &RouteCounts::second_try})
    routes.*route += other.routes.*route;
  matrices += other.matrices;
  failed += other.failed;
  left_to_cpu += other.left_to_cpu;
  sum += other.sum;
  if (std::isnan(other.worst) || other.worst > worst) worst = other.worst;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double standard_error_of_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1),
             half = std::sqrt(static_cast<double>(values.size())) / 2;
  const auto at = [&](double place) {
    return values[static_cast<std::size_t>(std::clamp(place, 0.0, last))];
  };
  const double width = at(std::ceil(last / 2 + half)) - at(std::floor(last / 2 - half));
  return width == 0 ? 0 : width / 2 / median_of(values);
}

void Timing::include(const Timing& other) {
  seconds.insert(seconds.end(), other.seconds.begin(), other.seconds.end());
  batches.insert(batches.end(), other.batches.begin(), other.batches.end());
  is_warm = is_warm && other.is_warm;
  accuracy.include(other.accuracy);
}

double Timing::median() const {
  if (batches.empty()) return median_of(seconds);
  std::vector<double> medians;
  for (const BatchTiming& batch : batches) medians.push_back(batch.median);
  return median_of(medians);
}

double Timing::worst() const {
  if (batches.empty()) return median_of(seconds);
  return std::ranges::max_element(batches, {}, &BatchTiming::median)->median;
}

double Timing::standard_error() const {
  if (batches.empty()) return standard_error_of_median(seconds);
  return std::ranges::max_element(batches, {}, &BatchTiming::standard_error)->standard_error;
}

double Timing::fastest() const { return *std::min_element(seconds.begin(), seconds.end()); }
double Timing::slowest() const { return *std::max_element(seconds.begin(), seconds.end()); }

bool Timing::has_outlier() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() - 1 - sorted.size() / 20] > 2 * median();
}

namespace {

/// Makes runs, counts their time, and keeps the times that are asked for.
class Runs {
 public:
  Runs(TimedRun& run, double limit_seconds, const Surroundings& around)
      : run_(run), limit_(limit_seconds), around_(around) {}

  /// The limit applies to the times that the runs report, without a first run that may have built
  /// its kernels.
  bool has_time() const { return spent_ + last_ <= limit_; }
  int made() const { return runs_; }
  double wall_seconds() const { return watch_.seconds(); }
  double spent() const { return spent_; }

  void make() {
    if (around_.before) around_.before();
    const Stopwatch watch;
    seconds_ = run_.run();
    if (runs_ == 0 && around_.first_run)
      timing_.first_seconds = run_.build_seconds() + watch.seconds();
    last_ = seconds_.factor + seconds_.check;
    if (runs_ == 0 && last_ <= around_.build_seconds) last_ = 0;
    spent_ += last_;
    ++runs_;
  }

  /// Counts the last run as a timed one. Each timed run is equally likely to be the one whose
  /// results are checked.
  void keep() {
    timing_.seconds.push_back(seconds_.factor);
    checks_.push_back(seconds_.check);
    const auto number = static_cast<int>(timing_.seconds.size());
    const std::uint64_t bits =
        mix_bits(mix_bits(around_.seed) ^ static_cast<std::uint64_t>(number));
    if (bits % static_cast<std::uint64_t>(number) != 0) return;
    verified_ = number;
    timing_.accuracy = run_.accuracy();
  }
  bool has_kept() const { return !checks_.empty(); }
  bool is_precise() const {
    return standard_error_of_median(timing_.seconds) < most_standard_error;
  }

  Timing timing() && {
    timing_.is_warm = runs_ > 1;
    timing_.check_seconds = median_of(checks_);
    timing_.batches = {{.seed = around_.seed,
                        .median = median_of(timing_.seconds),
                        .standard_error = standard_error_of_median(timing_.seconds),
                        .runs = static_cast<int>(timing_.seconds.size()),
                        .verified = verified_}};
    return std::move(timing_);
  }

 private:
  TimedRun& run_;
  double limit_;
  const Surroundings& around_;
  Stopwatch watch_;
  double spent_ = 0, last_ = 0;
  int runs_ = 0, verified_ = 0;
  RunSeconds seconds_;
  std::vector<double> checks_;
  Timing timing_;
};

}  // namespace

Timing time_runs(TimedRun& run, const Repeats& wanted, double limit_seconds,
                 const Surroundings& around) {
  Runs runs(run, limit_seconds, around);
  // Cold runs are not warmed up for longer.
  const auto is_cool = [&] {
    return runs.made() > 0 && runs.made() < wanted.most && !around.before &&
           runs.spent() < wanted.warm_up_seconds;
  };
  while (runs.has_time() && (runs.made() < wanted.warm_up || is_cool())) runs.make();
  for (int i = 0; i < wanted.most && runs.has_time(); ++i) {
    const bool is_extra = i >= wanted.timed;
    if (is_extra && (runs.is_precise() || runs.wall_seconds() > limit_seconds / 10)) break;
    runs.make();
    runs.keep();
  }
  if (!runs.has_kept()) {
    if (runs.made() == 0) runs.make();
    runs.keep();
  }
  return std::move(runs).timing();
}

}  // namespace qrtool
