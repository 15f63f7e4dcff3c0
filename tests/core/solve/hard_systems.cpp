// SPDX-License-Identifier: Apache-2.0
// hard_systems.cpp: solves as many hard problems as wanted on the CPU and says how near to their
// bar they come. The exit status is 1 where one is above it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/system_engine.hpp"
#include "tests/support/hard_systems.hpp"

namespace qrtool::test {
namespace {

/// What was found so far.
struct Tally {
  index_t problems = 0, failed = 0, tries = 0;
  double worst = 0;
  std::string worst_name;
};

template <class T>
void solve(const HardSystems<T>& s, const Limits& limits, Tally& tally) {
  const SolveProblem problem{.type = element_type<T>,
                             .m = s.m,
                             .n = s.n,
                             .rank = {.tolerance = default_rank_tolerance(element_type<T>, s.n)}};
  CpuBackend backend(limits);
  const Plan plan =
      make_plan(SystemEngine<T>::factored_problem(problem, s.count, 1), backend.variants(), limits);
  SystemEngine<T> engine(problem, backend, plan, limits.threads);
  std::vector<SystemRef<T>> systems;
  for (index_t i = 0; i < s.count; ++i) systems.push_back({s.a.data() + i * s.m * s.n, i});
  std::vector<T> x(static_cast<std::size_t>(s.count * s.n));
  std::vector<SolutionReport> reports(static_cast<std::size_t>(s.count));
  engine.run(systems, {.count = s.count,
                       .b = s.b.data(),
                       .b_places = VectorPlaces::rows(s.m),
                       .x = x.data(),
                       .x_places = VectorPlaces::rows(s.n),
                       .reports = reports});
  for (index_t i = 0; i < s.count; ++i) {
    const SolutionReport& report = reports[i];
    const double error = std::fmax(report.backward_error, report.least_norm_error) / report.bar;
    ++tally.problems;
    tally.failed += report.status != Status::ok;
    tally.tries += report.tries > 1;
    const std::string name =
        fmt::format("{} {}x{} {}", sizeof(T) == 4 ? "float32" : "float64", s.m, s.n, s.names[i]);
    if (report.status != Status::ok) fmt::print("fails: {}: {} of its bar\n", name, error);
    if (!(error > tally.worst)) continue;
    tally.worst = error;
    tally.worst_name = name;
  }
}

int run(index_t problems, std::uint64_t seed) {
  constexpr std::array<std::pair<index_t, index_t>, 14> shapes{{{1, 1},
                                                                {1, 5},
                                                                {5, 1},
                                                                {2, 2},
                                                                {7, 3},
                                                                {5, 9},
                                                                {16, 16},
                                                                {40, 7},
                                                                {33, 20},
                                                                {20, 40},
                                                                {64, 64},
                                                                {97, 33},
                                                                {288, 12},
                                                                {1200, 5}}};
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  Tally tally;
  for (; tally.problems < problems; ++seed) {
    for (const auto& [m, n] : shapes) {
      solve(make_hard_systems<float>(m, n, 1, seed), limits, tally);
      solve(make_hard_systems<double>(m, n, 1, seed), limits, tally);
    }
  }
  fmt::print("{} problems, {} above their bar, {} by a second try; worst {:.3g} of its bar: {}\n",
             tally.problems, tally.failed, tally.tries, tally.worst, tally.worst_name);
  return tally.failed > 0;
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  CLI::App app("hard least-squares problems on the CPU");
  std::int64_t problems = 100000;
  std::uint64_t seed = 1;
  app.add_option("--problems", problems, "at least; default 100000");
  app.add_option("--seed", seed, "the first; default 1");
  CLI11_PARSE(app, argc, argv);
  return qrtool::test::run(problems, seed);
}
