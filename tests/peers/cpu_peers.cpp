// SPDX-License-Identifier: Apache-2.0
// cpu_peers.cpp: the CPU path beside LAPACK libraries that are called from C++, as a Markdown
// table.
//
//     cpu_peers --threads 2 --rounds 20 --shapes 64x64,512x256 libopenblas.so.0 libmkl_rt.so.2
//
// A library is loaded by its name, and its geqrf and orgqr are called: one matrix per thread,
// sequential inside, or all threads of the library on one matrix where there are fewer matrices
// than threads. Matrices are Gaussian (--complex: complex, and ungqr is called) and already stored
// by columns; copying them back is not timed. A round times every contestant once on each case, one
// after the other, and ratios are taken within a round. --json writes every time.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/bench/contestants/baselines.hpp"
#include "app/bench/contestants/lapack.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/host.hpp"
#include "core/problem/operations.hpp"
#include "tests/peers/peers.hpp"

namespace qrtool {
namespace {

using peers::quantile;
using peers::ratio_to;
using peers::Seconds;

struct CpuOptions : peers::Options {
  std::vector<std::string> modes{"reduced", "r"};
  double seconds = 0.1;
  bool is_complex = false;
  std::string json;  // a file; empty: none
};

using Json = nlohmann::ordered_json;

/// The value of --precision, or the name of a complex type.
std::string_view type_name(const Problem& p) {
  return is_complex(p.type) ? name_of(p.type) : precision_name(p);
}

/// As many matrices as take about `seconds` at 5 GFLOP/s a thread.
index_t batch_of(const Problem& p, const CpuOptions& o, int threads) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = std::min(m, n);
  const double each = 3e-6 + operations_in(p.type) * 4 * std::max(m, n) * k * k / 5e9;
  return std::max<index_t>(1, static_cast<index_t>(o.seconds * threads / each));
}

void print_line(const std::string& what, const std::string& library, const Seconds& seconds,
                const Seconds& tool, double matrices) {
  const auto us = [&](double part) { return 1e6 * quantile(seconds, part) / matrices; };
  fmt::print("| {} | {} | {:.4g} | {:.4g} | {:.4g} | {:.2f} |\n", what, library, us(0), us(0.5),
             us(0.95), ratio_to(tool, seconds));
  std::fflush(stdout);
}

/// The times of a case, which are printed, and every one of them in JSON.
Json time_case(Problem problem, const std::string& what, const CpuOptions& o, const Limits& limits,
               const std::vector<std::unique_ptr<Contestant>>& contestants) {
  problem.count = batch_of(problem, o, limits.threads);
  std::vector<std::unique_ptr<TimedRun>> runs;
  for (const auto& contestant : contestants)
    runs.push_back(contestant->prepare(problem, {}, limits.threads));
  std::vector<Seconds> seconds(runs.size());
  for (const auto& run : runs) run->run();  // pages, threads and caches are warm afterwards
  for (int round = 0; round < o.rounds; ++round)
    for (std::size_t i = 0; i < runs.size(); ++i) seconds[i].push_back(runs[i]->run().factor);
  Json times = Json::object();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = i == 0 ? "qrtool" : contestants[i]->text();
    print_line(fmt::format("{}, {} matrices", what, problem.count), name, seconds[i], seconds[0],
               static_cast<double>(problem.count));
    times[name] = seconds[i];
  }
  return {{"m", problem.m},
          {"n", problem.n},
          {"batch", problem.count},
          {"precision", type_name(problem)},
          {"mode", name_of(problem.mode)},
          {"variant", runs[0]->variant()},
          {"seconds", times}};
}

void run(const CpuOptions& o) {
  const Limits limits = host_limits({}, o.threads);
  CpuBackend backend(limits);
  std::vector<std::unique_ptr<Contestant>> contestants;
  contestants.push_back(make_tool({.backend = backend, .variant = {}, .limits = limits}));
  for (const std::string& file : o.libraries) contestants.push_back(make_lapack(limits, file));
  fmt::print(
      "{} threads, {} rounds; microseconds for each matrix\n\n"
      "| case | library | min | median | 95 % | median ratio to qrtool |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      limits.threads, o.rounds);
  Json cases = Json::array();
  peers::for_each_case(o, [&](Problem p) {
    if (o.is_complex) p.type = complex_of(p.type);
    for (const std::string& mode : o.modes) {
      p.mode = mode == "r" ? Mode::r : Mode::reduced;
      cases.push_back(time_case(p, fmt::format("{}x{} {} {}", p.m, p.n, type_name(p), mode), o,
                                limits, contestants));
    }
  });
  if (o.json.empty()) return;
  const Json document{{"schema", "qrtool.cpu-peers/1"},
                      {"processor", backend.device()},
                      {"threads", limits.threads},
                      {"rounds", o.rounds},
                      {"cases", cases}};
  std::ofstream(o.json) << document.dump(1) << "\n";
}

}  // namespace
}  // namespace qrtool

int main(int argc, char** argv) {
  qrtool::CpuOptions o;
  o.shapes = {"8x8",     "16x16",   "32x32",   "64x64",    "128x64",
              "256x128", "512x256", "512x512", "1024x512", "2048x2048"};
  CLI::App app("Times the CPU path beside LAPACK libraries called from C++.", "cpu_peers");
  add_libraries(app, o);
  add_options(app, o);
  app.add_option("--modes", o.modes, "reduced,r")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"reduced", "r"}));
  app.add_flag("--complex", o.is_complex, "complex matrices, whose parts have the precision");
  app.add_option("--seconds", o.seconds, "of a run at 5 GFLOP/s for each thread");
  app.add_option("--json", o.json, "a file for every time");
  return qrtool::peers::run_main(app, argc, argv, [&] { qrtool::run(o); });
}
