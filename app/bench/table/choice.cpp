// SPDX-License-Identifier: Apache-2.0
// choice.cpp: compares what was chosen with what was measured.
#include "app/bench/table/choice.hpp"

#include <algorithm>

#include "app/engine/automatic.hpp"
#include "app/engine/opencl.hpp"
#include "app/run/backends/timings_file.hpp"

namespace qrtool {
namespace {

const std::optional<Timing>* timing_of(const BenchRow& row, const BenchHeader& header,
                                       std::string_view name) {
  const auto found = std::ranges::find(header.baselines, name, &BenchHeader::Baseline::name);
  if (found == header.baselines.end()) return nullptr;
  return &row.baselines[static_cast<std::size_t>(found - header.baselines.begin())];
}

/// Returns the time of a baseline with its check.
std::optional<double> whole_seconds(const BenchRow& row, const BenchHeader& header,
                                    std::string_view name) {
  const std::optional<Timing>* const timing = timing_of(row, header, name);
  if (timing == nullptr || !timing->has_value()) return std::nullopt;
  return (*timing)->median() + (*timing)->check_seconds;
}

/// Returns the times of the devices of this process, and the times that earlier processes kept.
Timings all_timings() {
  Timings timings = load_timings();
  // Each program is entered twice: a program that was built now will be in the driver's cache next
  // time.
  for (int turn = 0; turn < 2; ++turn)
    for (const DeviceTimes& times : device_times()) {
      DeviceTimes again = times;
      if (turn > 0) again.programs.clear();
      timings.add(again);
    }
  return timings;
}

}  // namespace

std::optional<BenchChoice> choice_of_backend(const BenchRow& row, const BenchHeader& header,
                                             const BenchSetup& setup) {
  const std::optional<double> cpu = whole_seconds(row, header, cpu_baseline),
                              device = whole_seconds(row, header, from_host_baseline);
  if (!cpu || !device) return std::nullopt;
  Problem problem = problem_of(row.size, header.type, header.mode, header.sign);
  problem.arithmetic = header.arithmetic;
  for (const DeviceTimes& times : device_times()) {
    if (times.info.text() != header.device || times.info.limits.is_cpu) continue;
    const Timings timings = all_timings();
    const Estimate estimated = estimate(problem, times.info, timings);
    const double with_start = estimated.start + estimated.programs.seconds + *device;
    const bool takes_device =
        choose_automatically(problem, setup.limits, {&times.info, 1}, timings).device != nullptr;
    const double best = std::min(*cpu, with_start);
    return BenchChoice{.taken = takes_device ? "device" : "cpu",
                       .best = *cpu <= with_start ? "cpu" : "device",
                       .taken_seconds = takes_device ? with_start : *cpu,
                       .best_seconds = best};
  }
  return std::nullopt;
}

std::optional<BenchChoice> choice_of_variant(const BenchRow& row, const BenchHeader& header) {
  if (!row.tool) return std::nullopt;
  BenchChoice choice{.taken = row.variant,
                     .best = row.variant,
                     .taken_seconds = row.tool->median(),
                     .best_seconds = row.tool->median()};
  bool has_variants = false;
  for (std::size_t i = 0; i < row.baselines.size(); ++i) {
    const std::string& name = header.baselines[i].name;
    if (name.find('/') == std::string::npos || !row.baselines[i]) continue;
    has_variants = true;
    const double seconds = row.baselines[i]->median();
    // A second run of the chosen variant differs only by chance.
    if (seconds < choice.best_seconds && name != row.variant) {
      choice.best = name;
      choice.best_seconds = seconds;
    }
  }
  return has_variants ? std::optional(choice) : std::nullopt;
}

}  // namespace qrtool
