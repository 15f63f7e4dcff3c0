// SPDX-License-Identifier: Apache-2.0
// hard_systems.cpp: solves as many hard problems as wanted on the CPU and says how near to their
// bar they come. The exit status is 1 where one is above it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>

#include "core/solve/triangular.hpp"
#include "tests/support/uneven_systems.hpp"

namespace qrtool::test {
namespace {

/// Counts what was found so far.
struct Tally {
  index_t problems = 0, failed = 0, tries = 0;
  double worst = 0;
  std::string worst_name;
};

/// Returns what is wrong with the answer for a system, or an empty text.
template <class T>
std::string complaint(const UnevenSystems<T>& s, const CpuAnswer<T>& answer,
                      const UnevenSystems<double>& evened, const CpuAnswer<double>& checked,
                      index_t i) {
  const SolutionReport &report = answer.reports[i], &other = checked.reports[i];
  if (report.status != Status::ok)
    return fmt::format("{} and {} of its bar", report.backward_error / report.bar,
                       report.least_norm_error / report.bar);
  // The weighted rows are rounded.
  const double u = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  if (!(other.backward_error <= report.bar + u))
    return fmt::format("{} of its bar without weights and gaps", other.backward_error / report.bar);
  const index_t m = s.systems.m, n = s.systems.n;
  const double size =
      norm_of(&evened.systems.a[i * m * n], m * n) *
          norm_of(std::vector<double>(&answer.x[i * n], &answer.x[i * n] + n).data(), n) +
      norm_of(&evened.systems.b[i * m], m);
  if (!(std::abs(report.residual_norm - other.residual_norm) <= 4 * u * size))
    return fmt::format("residual norm {}, not {}", report.residual_norm, other.residual_norm);
  const auto freedom = static_cast<double>(s.rows_used(i) - answer.findings[i].rank);
  if (report.freedom != freedom) return fmt::format("freedom {}, not {}", report.freedom, freedom);
  return {};
}

template <class T>
void solve(const UnevenSystems<T>& s, Tally& tally) {
  const CpuAnswer<T> answer = solve_on_cpu(s);
  const UnevenSystems<double> evened = s.evened();
  const CpuAnswer<double> checked =
      check_on_cpu(evened, std::vector<double>(answer.x.begin(), answer.x.end()));
  for (index_t i = 0; i < s.systems.count; ++i) {
    const SolutionReport& report = answer.reports[i];
    const double error = std::fmax(report.backward_error, report.least_norm_error) / report.bar;
    ++tally.problems;
    tally.tries += report.tries > 1;
    const std::string name = fmt::format("{} {}x{} {}, {}", name_of(element_type<T>), s.systems.m,
                                         s.systems.n, s.systems.names[i], name_of(s.rule));
    const std::string wrong = complaint(s, answer, evened, checked, i);
    tally.failed += !wrong.empty();
    if (!wrong.empty()) fmt::print("fails: {}: {}\n", name, wrong);
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
  std::array<Tally, row_rules.size()> tallies;
  index_t solved = 0, failed = 0;
  for (; solved < problems; ++seed) {
    for (const auto& [m, n] : shapes) {
      const HardSystems<float> singles = make_hard_systems<float>(m, n, 1, seed);
      const HardSystems<double> doubles = make_hard_systems<double>(m, n, 1, seed);
      // Weights of all are of another kind for each shape.
      const std::uint64_t of_rows = seed + static_cast<std::uint64_t>(m);
      for (std::size_t i = 0; i < row_rules.size(); ++i) {
        solve(make_uneven_systems(singles, row_rules[i], of_rows), tallies[i]);
        solve(make_uneven_systems(doubles, row_rules[i], of_rows), tallies[i]);
        solved += singles.count + doubles.count;
      }
    }
  }
  for (std::size_t i = 0; i < row_rules.size(); ++i) {
    const Tally& tally = tallies[i];
    fmt::print("{:24} {} problems, {} fail, {} by a second try; worst {:.3g} of its bar: {}\n",
               name_of(row_rules[i]), tally.problems, tally.failed, tally.tries, tally.worst,
               tally.worst_name);
    failed += tally.failed;
  }
  return failed > 0;
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
