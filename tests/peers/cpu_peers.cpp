// SPDX-License-Identifier: Apache-2.0
// cpu_peers.cpp: the CPU path beside LAPACK libraries that are called from C++, as a Markdown
// table.
//
//     cpu_peers --threads 2 --rounds 20 --shapes 64x64,512x256 libopenblas.so.0 libmkl_rt.so.2
//
// A library is loaded by its name, and its geqrf and orgqr are called: one matrix per thread,
// sequential inside, or all threads of the library on one matrix where there are fewer matrices
// than threads. Matrices are Gaussian and already stored by columns; copying them back is not
// timed. A round times every contestant once on each case, one after the other, and ratios are
// taken within a round.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "app/bench/baselines.hpp"
#include "app/bench/lapack.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/host.hpp"

namespace qrtool {
namespace {

struct Options {
  std::vector<std::string> libraries, modes{"reduced", "r"}, precisions{"single", "double"};
  std::vector<std::string> shapes{"8x8",     "16x16",   "32x32",   "64x64",    "128x64",
                                  "256x128", "512x256", "512x512", "1024x512", "2048x2048"};
  int threads = 0, rounds = 10;
  double seconds = 0.1;
};

/// The value of which a part of the sorted values is not larger.
double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const double at = part * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(at + 0.5)];
}

/// As many matrices as take about `seconds` at 5 GFLOP/s a thread.
index_t batch_of(const Problem& p, const Options& o, int threads) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = std::min(m, n);
  const double each = 3e-6 + 4 * std::max(m, n) * k * k / 5e9;
  return std::max<index_t>(1, static_cast<index_t>(o.seconds * threads / each));
}

Problem problem_of(const std::string& shape, const std::string& precision,
                   const std::string& mode) {
  Problem p;
  if (std::sscanf(shape.c_str(), "%ldx%ld", &p.m, &p.n) != 2 || p.m < 1 || p.n < 1)
    throw UsageError(fmt::format("--shapes: {} is not MxN", shape));
  p.type = precision == "double" ? ElementType::float64 : ElementType::float32;
  p.mode = mode == "r" ? Mode::r : Mode::reduced;
  return p;
}

/// Seconds of every round, without the check.
using Seconds = std::vector<double>;

void print_line(const std::string& what, const std::string& library, const Seconds& seconds,
                const Seconds& tool, double matrices) {
  Seconds ratios;
  for (std::size_t i = 0; i < seconds.size(); ++i) ratios.push_back(seconds[i] / tool[i]);
  const auto us = [&](double part) { return 1e6 * quantile(seconds, part) / matrices; };
  fmt::print("| {} | {} | {:.4g} | {:.4g} | {:.4g} | {:.2f} |\n", what, library, us(0), us(0.5),
             us(0.95), quantile(ratios, 0.5));
  std::fflush(stdout);
}

void time_case(Problem problem, const std::string& what, const Options& o, const Limits& limits,
               const std::vector<std::unique_ptr<Contestant>>& contestants) {
  problem.count = batch_of(problem, o, limits.threads);
  std::vector<std::unique_ptr<TimedRun>> runs;
  for (const auto& contestant : contestants)
    runs.push_back(contestant->prepare(problem, limits.threads));
  std::vector<Seconds> seconds(runs.size());
  for (const auto& run : runs) run->run();  // pages, threads and caches are warm afterwards
  for (int round = 0; round < o.rounds; ++round)
    for (std::size_t i = 0; i < runs.size(); ++i) seconds[i].push_back(runs[i]->run().factor);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    print_line(fmt::format("{}, {} matrices", what, problem.count),
               i == 0 ? "qrtool" : contestants[i]->text(), seconds[i], seconds[0],
               static_cast<double>(problem.count));
  }
}

void run(const Options& o) {
  const Limits limits = host_limits({}, o.threads);
  CpuBackend backend(limits);
  std::vector<std::unique_ptr<Contestant>> contestants;
  contestants.push_back(make_tool({.backend = backend, .variant = {}, .limits = limits}));
  for (const std::string& file : o.libraries) contestants.push_back(make_lapack(limits, 0, file));
  fmt::print(
      "{} threads, {} rounds; microseconds for each matrix\n\n"
      "| case | library | min | median | 95 % | median ratio to qrtool |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      limits.threads, o.rounds);
  for (const std::string& precision : o.precisions)
    for (const std::string& mode : o.modes)
      for (const std::string& shape : o.shapes)
        time_case(problem_of(shape, precision, mode),
                  fmt::format("{} {} {}", shape, precision, mode), o, limits, contestants);
}

}  // namespace
}  // namespace qrtool

int main(int argc, char** argv) {
  qrtool::Options o;
  CLI::App app("Times the CPU path beside LAPACK libraries called from C++.");
  app.add_option("library", o.libraries, "file names for dlopen, with 32-bit sizes");
  app.add_option("--shapes", o.shapes, "MxN,...")->delimiter(',')->allow_extra_args(false);
  app.add_option("--precisions", o.precisions, "single,double")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"single", "double"}));
  app.add_option("--modes", o.modes, "reduced,r")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"reduced", "r"}));
  app.add_option("--threads", o.threads, "default: all cores");
  app.add_option("--rounds", o.rounds)->check(CLI::PositiveNumber);
  app.add_option("--seconds", o.seconds, "of a run at 5 GFLOP/s for each thread");
  CLI11_PARSE(app, argc, argv);
  try {
    qrtool::run(o);
  } catch (const qrtool::Error& error) {
    fmt::print(stderr, "cpu_peers: {}\n", error.what());
    return 1;
  }
}
