// SPDX-License-Identifier: Apache-2.0
// peers.hpp: what the programs of this folder have in common: options, shapes, clocks, main.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/problem/problem.hpp"

namespace qrtool::peers {

struct Options {
  std::vector<std::string> libraries, shapes, precisions{"single", "double"};
  int threads = 0, rounds = 10;
  bool cpu_time = false;
};

/// Adds the options that every program has, and --cpu-time where `o.cpu_time` counts.
inline void add_options(CLI::App& app, Options& o) {
  app.add_option("--shapes", o.shapes, "MxN,...")->delimiter(',')->allow_extra_args(false);
  app.add_option("--precisions", o.precisions, "single,double")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"single", "double"}));
  app.add_option("--threads", o.threads, "default: all cores");
  app.add_option("--rounds", o.rounds)->check(CLI::PositiveNumber);
}
inline void add_libraries(CLI::App& app, Options& o) {
  app.add_option("library", o.libraries, "file names for dlopen, with 32-bit sizes");
}
/// Processor time repeats better than wall time on a machine that does other work.
inline void add_cpu_time(CLI::App& app, Options& o) {
  app.add_flag("--cpu-time", o.cpu_time, "processor time of all threads, not wall time");
}

/// Parses the command line and runs. Returns the exit status.
inline int run_main(CLI::App& app, int argc, char** argv, const std::function<void()>& run) {
  CLI11_PARSE(app, argc, argv);
  try {
    run();
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 1;
  }
  return 0;
}

/// Calls body(problem) for every precision and shape. Errors: UsageError.
template <class Body>
void for_each_case(const Options& o, Body body) {
  for (const std::string& precision : o.precisions) {
    for (const std::string& shape : o.shapes) {
      Problem p;
      if (std::sscanf(shape.c_str(), "%ldx%ld", &p.m, &p.n) != 2 || p.m < 1 || p.n < 1)
        throw UsageError(fmt::format("--shapes: {} is not MxN", shape));
      p.type = precision == "double" ? ElementType::float64 : ElementType::float32;
      body(p);
    }
  }
}

/// The time that body() takes.
template <class Body>
double seconds_of(bool cpu_time, Body body) {
  const auto now = [&] {
    timespec t{};
    clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  body();
  return now() - start;
}

/// Seconds of every round.
using Seconds = std::vector<double>;

/// The value of which a part of the values is not larger.
inline double quantile(Seconds values, double part) {
  std::sort(values.begin(), values.end());
  const double at = part * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(at + 0.5)];
}

/// The median over rounds of the ratio to the tool's time in the same round.
inline double ratio_to(const Seconds& tool, const Seconds& seconds) {
  Seconds ratios;
  for (std::size_t i = 0; i < seconds.size(); ++i) ratios.push_back(seconds[i] / tool[i]);
  return quantile(ratios, 0.5);
}

}  // namespace qrtool::peers
