// SPDX-License-Identifier: Apache-2.0
// group_system.cpp: which rows count, and R^2.
#include "app/solve/groups/group_system.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/solve/results/fit.hpp"

namespace qrtool {

SolveProblem GroupSystem::problem_of(index_t m) const {
  SolveProblem p = problem;
  p.m = m;
  p.wants_se = problem.wants_se && m > p.n;
  return p;
}

bool GroupSystem::counts(const double* numbers, index_t response) const {
  if (weights >= 0 && numbers[weights] == 0) return false;
  if (!skips_missing) return true;
  return !std::isnan(numbers[responses[static_cast<std::size_t>(response)]]) && has_a(numbers);
}

void GroupSystem::divide(const double* numbers, double* a, double* b) const {
  if (problem.has_intercept) *a++ = 1;
  for (const index_t place : others) *a++ = numbers[place];
  for (const index_t place : responses) *b++ = numbers[place];
}

bool GroupSystem::has_a(const double* numbers) const {
  return std::ranges::none_of(others, [&](index_t place) { return std::isnan(numbers[place]); });
}

void find_r_squared(const GroupSystem& system, const GroupRows& rows, index_t response,
                    GroupLine& line) {
  const index_t place = system.responses[static_cast<std::size_t>(response)];
  const auto for_counting = [&](auto use) {
    rows.visit(0, rows.count(), [&](const double* numbers) {
      if (system.counts(numbers, response))
        use(numbers[place], system.weights < 0 ? 1.0 : numbers[system.weights]);
    });
  };
  double largest = 0;
  for_counting([&](double b, double) { largest = std::max(largest, std::abs(b)); });
  if (!(largest > 0) || !std::isfinite(largest)) return;
  // Squares of numbers near 1 neither overflow nor vanish.
  const int scale = std::ilogb(largest);
  constexpr std::size_t at_once = 1024;
  std::vector<double> some_b, some_w;
  Spread spread;
  const auto take = [&] {
    const auto count = std::ssize(some_b);
    RowFactors factors(count);
    factors.weigh(some_w.data(), 1);
    merge(spread, spread_of<double>({some_b.data(), count, 1, 1}, 1.0, factors, 0));
    some_b.clear();
    some_w.clear();
  };
  for_counting([&](double b, double w) {
    some_b.push_back(std::ldexp(b, -scale));
    some_w.push_back(w);
    if (some_b.size() == at_once) take();
  });
  take();
  line.r2 = explain(spread, std::ldexp(line.report.residual_norm, -scale),
                    system.problem.has_intercept, line.report)
                .r_squared;
}

}  // namespace qrtool
