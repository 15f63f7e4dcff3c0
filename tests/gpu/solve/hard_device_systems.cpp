// SPDX-License-Identifier: Apache-2.0
// hard_device_systems.cpp: solves as many hard problems as wanted on a device, and lets core check
// all solutions that the device accepts. The exit status is 1 where one is above its bar.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/system_engine.hpp"
#include "gpu/host/device.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/support/hard_systems.hpp"

namespace qrtool::test {
namespace {

/// What was found so far.
struct Tally {
  index_t problems = 0, refused = 0, failed = 0;
  double worst = 0;
};

template <class T>
void solve(OpenclBackend& device, const HardSystems<T>& s, Tally& tally) {
  SolveProblem problem{.type = element_type<T>,
                       .m = s.m,
                       .n = s.n,
                       .rank = {.tolerance = default_rank_tolerance(element_type<T>, s.n)}};
  const Plan plan =
      make_plan({.count = s.count, .m = s.m, .n = s.n, .type = element_type<T>, .mode = Mode::r},
                device.variants(), device.limits());
  std::vector<T> x(static_cast<std::size_t>(s.count * s.n));
  std::vector<SolutionReport> reports(static_cast<std::size_t>(s.count));
  const RightSideBlock<T> block{.count = s.count,
                                .b = s.b.data(),
                                .b_places = VectorPlaces::rows(s.m),
                                .x = x.data(),
                                .x_places = VectorPlaces::rows(s.n),
                                .reports = reports};
  const std::vector<index_t> refused = make_system_device<T>(device, problem, plan)
                                           ->run(packed(s.a.data(), s.count, s.m, s.n), block);
  problem.only_checks = true;
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  CpuBackend cpu(limits);
  const Plan check =
      make_plan(SystemEngine<T>::factored_problem(problem, s.count, 1), cpu.variants(), limits);
  std::vector<SystemRef<T>> accepted;
  for (index_t i = 0; i < s.count; ++i)
    if (!std::binary_search(refused.begin(), refused.end(), i))
      accepted.push_back({s.a.data() + i * s.m * s.n, i});
  SystemEngine<T>(problem, cpu, check, limits.threads).run(accepted, block);
  tally.problems += s.count;
  tally.refused += std::ssize(refused);
  for (const SystemRef<T>& system : accepted) {
    const SolutionReport& report = reports[system.first];
    tally.worst = std::max(tally.worst, report.backward_error / report.bar);
    if (report.status == Status::ok) continue;
    ++tally.failed;
    fmt::print("fails: {} {}x{} {}: {} of its bar\n", name_of(problem.type), s.m, s.n,
               s.names[system.first], report.backward_error / report.bar);
  }
}

int run(OpenclBackend& device, index_t problems, std::uint64_t seed) {
  constexpr std::array<std::pair<index_t, index_t>, 12> shapes{{{1, 1},
                                                                {5, 1},
                                                                {2, 2},
                                                                {7, 3},
                                                                {16, 16},
                                                                {40, 7},
                                                                {33, 20},
                                                                {64, 64},
                                                                {97, 33},
                                                                {288, 12},
                                                                {1200, 5},
                                                                {5000, 5}}};
  Tally tally;
  for (; tally.problems < problems; ++seed) {
    for (const auto& [m, n] : shapes) {
      const index_t each = m > 1000 ? 1 : 10;
      solve(device, make_hard_systems<float>(m, n, each, seed), tally);
      solve(device, make_hard_systems<double>(m, n, each, seed), tally);
    }
  }
  fmt::print("{} problems, {} refused, {} above their bar; worst {:.3g} of its bar\n",
             tally.problems, tally.refused, tally.failed, tally.worst);
  return tally.failed > 0;
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  using namespace qrtool;
  CLI::App app("hard least-squares problems on a device");
  std::int64_t problems = 100000;
  std::uint64_t seed = 1;
  std::string device;
  app.add_option("--problems", problems, "at least; default 100000");
  app.add_option("--seed", seed, "the first; default 1");
  app.add_option("--device", device, "as for qrtool");
  CLI11_PARSE(app, argc, argv);
  OpenclBackend backend(choose_device(device),
                        {.host = {.host_bytes = std::size_t{1} << 30, .threads = 2}});
  return test::run(backend, problems, seed);
}
