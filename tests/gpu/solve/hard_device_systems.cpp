// SPDX-License-Identifier: Apache-2.0
// hard_device_systems.cpp: solves as many hard problems as wanted on a device, and judges all
// solutions that the device accepts: with a matrix of their own, with and without weights and
// missing rows, or with one matrix for all. The device must answer for Gaussian matrices whose
// condition is moderate. The exit status is 1 where something is wrong.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>

#include "core/solve/engines/shared_engine.hpp"
#include "gpu/host/device.hpp"
#include "gpu/solve/shared/shared_matrix.hpp"
#include "gpu/solve/shared/shared_systems.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/system_judge.hpp"

namespace qrtool::test {
namespace {

/// A device must accept systems of Gaussian matrices up to this condition.
constexpr double moderate_condition = 1000;

template <class T>
SystemAnswers<T> room_for(const UnevenSystems<T>& s) {
  const HardSystems<T>& systems = s.systems;
  return {.x = std::vector<T>(static_cast<std::size_t>(systems.count * systems.n)),
          .reports = std::vector<SolutionReport>(static_cast<std::size_t>(systems.count)),
          .findings = {},
          .refused = {}};
}

/// Systems that all have matrix i and keep their right sides. With gaps a fifth of the entries of
/// the right sides is missing.
template <class T>
UnevenSystems<T> sharing(const HardSystems<T>& systems, index_t i, bool has_gaps, Draw& draw) {
  UnevenSystems<T> s{.rule = {.has_gaps = has_gaps}, .systems = systems, .w = {}, .factors = {}};
  for (index_t side = 0; side < systems.count; ++side)
    std::copy_n(&systems.a[i * systems.m * systems.n], systems.m * systems.n,
                &s.systems.a[side * systems.m * systems.n]);
  for (T& entry : s.systems.b) {
    const bool is_missing = has_gaps && draw.chance(0.2);
    if (is_missing) entry = std::numeric_limits<T>::quiet_NaN();
    s.factors.push_back(is_missing ? 0 : 1);
  }
  return s;
}

/// Some matrices with many right sides, where A has the accuracy that products need.
template <class T>
void solve_shared(OpenclBackend& device, const HardSystems<T>& systems, std::uint64_t seed,
                  SystemTally& tally) {
  Draw draw(mix_bits(seed), 0);
  const index_t step = std::max<index_t>(1, systems.count / 6);
  for (index_t i = draw.whole(0, step - 1); i < systems.count; i += step) {
    const bool has_gaps = draw.chance(0.5);
    const UnevenSystems<T> s = sharing(systems, i, has_gaps, draw);
    const SolveProblem problem = s.problem();
    const MatrixView<const T> a{s.systems.a.data(), systems.m, systems.n, systems.n};
    SharedEngine<T> engine(problem, {.host_bytes = std::size_t{1} << 30, .threads = 2});
    engine.take_matrix(a, nullptr, 1);
    const auto factors = engine.factors();
    if (!factors || !shared_objection(problem, 0, device.limits()).empty()) continue;
    SystemAnswers<T> answers = room_for(s);
    std::vector<MatrixFindings> none;
    answers.refused = make_shared_device<T>(device, problem, a, *factors, SidesLayout::rows)
                          ->run(s.block(answers.x, answers.reports, none));
    judge_systems(s, answers, has_gaps ? "one matrix, gaps" : "one matrix", tally);
  }
}

template <class T>
void solve(OpenclBackend& device, const UnevenSystems<T>& s, SystemTally& tally) {
  const index_t m = s.systems.m, n = s.systems.n, count = s.systems.count;
  const SolveProblem problem = s.problem();
  const Plan plan =
      make_plan({.count = count, .m = m, .n = n, .type = problem.type, .mode = Mode::r},
                device.variants(), device.limits());
  SystemAnswers<T> answers = room_for(s);
  answers.findings.resize(answers.reports.size());
  answers.refused = make_system_device<T>(device, problem, plan)
                        ->run(packed(s.systems.a.data(), count, m, n),
                              s.block(answers.x, answers.reports, answers.findings));
  const std::string kind = name_of(s.rule);
  judge_systems(s, answers, kind, tally);
  const SystemAnswers<T> cpu = solve_on_cpu(s);
  for (const index_t i : answers.refused) {
    const MatrixFindings& found = cpu.findings[i];
    if (s.systems.names[i].starts_with("gauss") && found.rank == n &&
        found.condition <= moderate_condition)
      tally.fail(name_of(s, i, kind), "refused");
  }
}

int run(OpenclBackend& device, index_t problems, std::uint64_t seed) {
  std::array<SystemTally, row_rules.size()> tallies;
  SystemTally of_one_matrix, all;
  for (; all.problems < problems; ++seed) {
    visit_hard_systems(10, seed, [&](const auto& systems, std::uint64_t of_rows) {
      if (systems.m < systems.n) return;
      for (std::size_t i = 0; i < row_rules.size(); ++i)
        solve(device, make_uneven_systems(systems, row_rules[i], of_rows), tallies[i]);
      solve_shared(device, systems, seed, of_one_matrix);
    });
    all = of_one_matrix;
    for (const SystemTally& tally : tallies) all.include(tally);
  }
  for (std::size_t i = 0; i < row_rules.size(); ++i) tallies[i].print(name_of(row_rules[i]));
  of_one_matrix.print("one matrix");
  all.print("all");
  return all.failed > 0;
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
  DeviceInfo info = choose_device(device);
  // The larger shapes go to the device in several parts.
  info.limits.max_allocation_bytes = std::size_t{1} << 20;
  OpenclBackend backend(info, {.host = {.host_bytes = std::size_t{1} << 30, .threads = 2}});
  return test::run(backend, problems, seed);
}
