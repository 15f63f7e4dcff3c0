// SPDX-License-Identifier: Apache-2.0
// cpu_rates.cpp: prints the table core/cpu/runs.csv, measured on this machine in processor time of
// one thread, so that other work on the machine counts for little.
//
//     build/release/tests/qrtool_cpu_rates > runs.csv
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <limits>

#include "app/bench/contestants/baselines.hpp"
#include "app/bench/contestants/systems.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/host.hpp"
#include "core/plan/cost.hpp"

namespace qrtool {
namespace {

struct MeasuredShape {
  index_t m, n;
};
constexpr MeasuredShape shapes[] = {
    {4, 4},       {8, 8},        {16, 16},       {32, 32},     {48, 48},    {64, 64},
    {96, 96},     {128, 128},    {160, 160},     {256, 256},   {512, 512},  {1024, 1024},
    {2048, 2048}, {5000, 5000},  {64, 8},        {100, 10},    {128, 64},   {200, 64},
    {256, 32},    {256, 128},    {512, 256},     {600, 96},    {1000, 3},   {1000, 16},
    {1024, 32},   {1024, 128},   {1024, 512},    {4000, 16},   {4000, 64},  {4000, 160},
    {8000, 32},   {8000, 128},   {20000, 96},    {40000, 160}, {100000, 4}, {100000, 16},
    {100000, 64}, {1000000, 32}, {1000000, 128}, {8, 64},      {64, 256},   {100, 1000}};

/// As many matrices as have this many entries, so that a thread has many packs of small ones.
constexpr index_t entries = index_t{1} << 21;
constexpr int most_runs = 5;
constexpr double enough_seconds = 1;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The least processor time of a few runs for each matrix, as a row of the table.
void add_row(const char* run, const BenchSetup& setup, Problem problem, CostTable& table) {
  problem.count = std::max<index_t>(1, entries / (problem.m * problem.n));
  const std::unique_ptr<TimedRun> timed = make_tool(setup)->prepare(problem, {}, 1);
  double least = std::numeric_limits<double>::infinity(), spent = 0;
  for (int i = 0; i < most_runs && spent < enough_seconds; ++i) {
    const double start = processor_seconds();
    timed->run();
    const double seconds = processor_seconds() - start;
    least = std::min(least, seconds);
    spent += seconds;
  }
  table.add(run, problem, {{1, least / static_cast<double>(problem.count)}});
}

}  // namespace
}  // namespace qrtool

int main() {
  using namespace qrtool;
  const Limits limits = host_limits({}, 1);
  CpuBackend backend(limits);
  const BenchSetup factors{.backend = backend, .variant = {}, .limits = limits};
  BenchSetup systems = factors;
  systems.task = BenchTask::solve;
  CostTable table(backend.device() + ", one thread");
  for (const ElementType type : {ElementType::float32, ElementType::float64}) {
    for (const auto& [m, n] : shapes) {
      add_row("run/factor", factors, {1, m, n, type}, table);
      add_row("run/factor", factors, {1, m, n, type, Mode::r}, table);
      if (m >= n) add_row("run/solve", systems, {1, m, n, type, Mode::r}, table);
    }
  }
  fmt::print("{}", table.text());
}
