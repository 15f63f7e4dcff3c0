// SPDX-License-Identifier: Apache-2.0
// sweep.hpp: measures one case after another, with one column per contestant.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/contestants/baselines.hpp"
#include "app/bench/table/table.hpp"
#include "app/bench/timing/cases.hpp"
#include "app/process/stopwatch.hpp"

namespace qrtool {

class Sweep {
 public:
  /// All arguments must outlive the sweep.
  Sweep(const BenchOptions& options, const BenchSchedule& schedule, const BenchSetup& setup);

  /// Returns the cases that are measured so far.
  const BenchResult& result() const { return result_; }
  /// Keeps the state of the machine before and after the measurement.
  void keep(MachineState before, MachineState after);

  /// Measures a case and adds its row to the result. A cell that cannot be measured stays empty,
  /// with a note; it never ends the sweep.
  const BenchRow& measure(const BenchCase& size);

 private:
  struct Column {
    std::unique_ptr<Contestant> contestant;
    CostHistory history;
    std::function<void()> flush = {};  // of the caches; null: they stay
  };

  BenchHeader header(const BenchSetup& setup) const;
  std::optional<Timing> measure(Column& column, BenchRow& row);
  Timing time(Column& column, BenchRow& row);
  Timing time(Column& column, BenchRow& row, std::uint64_t seed, double limit_seconds);
  double seconds_left() const;
  void refuse_if_too_slow(double predicted_seconds, double limit_seconds) const;
  void keep_quality(const Timing& timing, BenchRow& row);
  /// Whether the time is the time of a device's only run, which may have built its kernels.
  bool has_built(const Column& column, const Timing& timing) const;
  void add_timing_notes(const Column& column, const Timing& timing, BenchRow& row);

  void add_choices(BenchRow& row) const;

  const BenchOptions& options_;
  const BenchSchedule& schedule_;
  BenchSetup setup_;
  Stopwatch watch_;
  std::vector<Column> columns_;  // the tool, then its baselines
  BenchResult result_;
};

}  // namespace qrtool
