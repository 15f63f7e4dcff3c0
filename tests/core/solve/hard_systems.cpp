// SPDX-License-Identifier: Apache-2.0
// hard_systems.cpp: solves as many hard problems as wanted on the CPU and says how near to their
// bar they come. The exit status is 1 where one is above it.
#include <CLI/CLI.hpp>
#include <array>

#include "tests/support/system_judge.hpp"

namespace qrtool::test {
namespace {

int run(index_t problems, std::uint64_t seed) {
  std::array<SystemTally, row_rules.size()> tallies;
  SystemTally all;
  for (index_t solved = 0; solved < problems; ++seed) {
    visit_hard_systems(1, seed, [&](const auto& systems, std::uint64_t of_rows) {
      if (systems.m > 2000) return;  // these take long
      for (std::size_t i = 0; i < row_rules.size(); ++i) {
        const auto s = make_uneven_systems(systems, row_rules[i], of_rows);
        judge_systems(s, solve_on_cpu(s), name_of(s.rule), tallies[i]);
        solved += systems.count;
      }
    });
  }
  for (std::size_t i = 0; i < row_rules.size(); ++i) {
    tallies[i].print(name_of(row_rules[i]));
    all.include(tallies[i]);
  }
  return all.failed > 0;
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
