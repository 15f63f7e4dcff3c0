// SPDX-License-Identifier: Apache-2.0
// group_system.cpp: which rows count, and R^2.
#include "app/solve/groups/group_system.hpp"

#include <algorithm>
#include <cmath>

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
  const auto is_there = [&](index_t place) { return !std::isnan(numbers[place]); };
  return is_there(responses[static_cast<std::size_t>(response)]) &&
         std::all_of(others.begin(), others.end(), is_there);
}

double r_squared(const GroupSystem& system, const GroupRows& rows, index_t response, double norm) {
  const index_t place = system.responses[static_cast<std::size_t>(response)];
  double first = not_measured, largest = 0;
  bool are_equal = true;
  const auto for_counting = [&](auto use) {
    rows.visit(0, rows.count(), [&](const double* numbers) {
      if (!system.counts(numbers, response)) return;
      use(numbers[place], system.weights < 0 ? 1.0 : numbers[system.weights]);
    });
  };
  for_counting([&](double b, double) {
    if (std::isnan(first)) first = b;
    are_equal = are_equal && b == first;
    largest = std::max(largest, std::abs(b));
  });
  if (!(largest > 0) || !std::isfinite(largest)) return not_measured;
  if (system.problem.has_intercept && are_equal) return not_measured;
  // Squares of numbers near 1 neither overflow nor vanish.
  const int scale = std::ilogb(largest);
  double weight = 0, mean = 0, squares = 0;
  for_counting([&](double b, double w) {
    b = std::ldexp(b, -scale);
    if (!system.problem.has_intercept) {
      squares += w * b * b;
      return;
    }
    // The update of Welford and West: no difference of large sums.
    const double difference = b - mean;
    weight += w;
    mean += difference * (w / weight);
    squares += w * difference * (b - mean);
  });
  const double residual = std::ldexp(norm, -scale);
  return 1 - residual * residual / squares;
}

}  // namespace qrtool
