// SPDX-License-Identifier: Apache-2.0
// hard_device_systems.cpp: solves as many hard problems as wanted on a device, and lets core check
// all solutions that the device accepts, with a matrix of their own or one for all. The exit status
// is 1 where one is above its bar.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <random>
#include <span>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/shared_engine.hpp"
#include "core/solve/system_engine.hpp"
#include "gpu/host/device.hpp"
#include "gpu/solve/shared_matrix.hpp"
#include "gpu/solve/shared_systems.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/support/hard_systems.hpp"

namespace qrtool::test {
namespace {

/// What was found so far.
struct Tally {
  index_t problems = 0, refused = 0, failed = 0;
  double worst = 0;
};

/// Counts the refused systems, and lets core check all others.
template <class T>
void check(SolveProblem problem, const HardSystems<T>& s, const RightSideBlock<T>& block,
           const std::vector<index_t>& refused, std::span<const SystemRef<T>> systems,
           Tally& tally) {
  problem.only_checks = true;
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  CpuBackend cpu(limits);
  const Plan plan = make_plan(SystemEngine<T>::factored_problem(problem, std::ssize(systems), 1),
                              cpu.variants(), limits);
  std::vector<SystemRef<T>> accepted;
  for (const SystemRef<T>& system : systems)
    if (!std::binary_search(refused.begin(), refused.end(), system.first))
      accepted.push_back(system);
  SystemEngine<T>(problem, cpu, plan, limits.threads).run(accepted, block);
  tally.problems += std::ssize(systems);
  tally.refused += std::ssize(refused);
  for (const SystemRef<T>& system : accepted) {
    const SolutionReport& report = block.reports[static_cast<std::size_t>(system.first)];
    tally.worst = std::max(tally.worst, report.backward_error / report.bar);
    if (report.status == Status::ok) continue;
    ++tally.failed;
    fmt::print("fails: {} {}x{} {}{}: {} of its bar\n", name_of(problem.type), s.m, s.n,
               s.names[static_cast<std::size_t>(system.first)],
               problem.skips_missing ? ", gaps" : "", report.backward_error / report.bar);
  }
}

template <class T>
SolveProblem problem_of(const HardSystems<T>& s) {
  return {.type = element_type<T>,
          .m = s.m,
          .n = s.n,
          .rank = {.tolerance = default_rank_tolerance(element_type<T>, s.n)}};
}

/// Some matrices with the right sides of all, where A has the accuracy that products need: without
/// gaps, and with a fifth of b missing.
template <class T>
void solve_shared(OpenclBackend& device, const HardSystems<T>& s, std::uint64_t seed,
                  Tally& tally) {
  std::mt19937_64 random(seed);
  const index_t step = std::max<index_t>(1, s.count / 6);
  for (index_t i = static_cast<index_t>(random() % static_cast<std::uint64_t>(step)); i < s.count;
       i += step) {
    SolveProblem problem = problem_of(s);
    problem.skips_missing = random() % 2 == 1;
    std::vector<T> b = s.b, x(static_cast<std::size_t>(s.count * s.n));
    for (T& entry : b)
      if (problem.skips_missing && random() % 5 == 0) entry = std::numeric_limits<T>::quiet_NaN();
    std::vector<SolutionReport> reports(static_cast<std::size_t>(s.count));
    const RightSideBlock<T> block{.count = s.count,
                                  .b = b.data(),
                                  .b_places = VectorPlaces::rows(s.m),
                                  .x = x.data(),
                                  .x_places = VectorPlaces::rows(s.n),
                                  .reports = reports};
    const MatrixView<const T> a{s.a.data() + i * s.m * s.n, s.m, s.n, s.n};
    SharedEngine<T> engine(problem, {.host_bytes = std::size_t{1} << 30, .threads = 2});
    engine.take_matrix(a, nullptr, 1);
    const auto factors = engine.factors();
    if (!factors || !shared_objection(problem, 0, device.limits()).empty()) continue;
    const std::vector<index_t> refused =
        make_shared_device<T>(device, problem, a, *factors, SidesLayout::rows)->run(block);
    std::vector<SystemRef<T>> systems;
    for (index_t side = 0; side < s.count; ++side) systems.push_back({a.data, side});
    check<T>(problem, s, block, refused, systems, tally);
  }
}

template <class T>
void solve(OpenclBackend& device, const HardSystems<T>& s, Tally& tally) {
  const SolveProblem problem = problem_of(s);
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
  std::vector<SystemRef<T>> systems;
  for (index_t i = 0; i < s.count; ++i) systems.push_back({s.a.data() + i * s.m * s.n, i});
  check<T>(problem, s, block, refused, systems, tally);
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
      const HardSystems<float> singles = make_hard_systems<float>(m, n, each, seed);
      const HardSystems<double> doubles = make_hard_systems<double>(m, n, each, seed);
      solve(device, singles, tally);
      solve(device, doubles, tally);
      solve_shared(device, singles, seed, tally);
      solve_shared(device, doubles, seed, tally);
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
