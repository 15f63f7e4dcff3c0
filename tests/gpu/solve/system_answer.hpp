// SPDX-License-Identifier: Apache-2.0
// system_answer.hpp: asks a device to solve systems, and keeps what it says of them.
#pragma once

#include <algorithm>
#include <vector>

#include "core/solve/backward_error.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test {

struct Shape {
  index_t m, n;
};
template <class T>
SolveProblem problem_of(index_t m, index_t n) {
  return {.type = element_type<T>,
          .m = m,
          .n = n,
          .rank = {.tolerance = default_rank_tolerance(element_type<T>, n)},
          .wants_se = m > n};
}

/// R by the same variant, however many systems there are; of wide ones that of A'.
inline Plan plan_of_r(const SolveProblem& p) {
  return plan_for({.count = 100,
                   .m = std::max(p.packed_rows(), p.n),
                   .n = p.k(),
                   .type = p.type,
                   .mode = Mode::r},
                  "");
}

/// What a device says of some systems. Places that it must fill hold a number that no solution has.
template <class T>
struct Answer {
  static constexpr T unset = T(-12345.5);

  Answer(index_t systems, index_t sides, index_t n)
      : x(systems * sides * n, unset),
        se(x.size(), unset),
        reports(systems * sides),
        findings(reports.size()) {}

  std::vector<T> x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
  std::vector<index_t> refused;

  bool accepts(index_t system) const {
    return !std::binary_search(refused.begin(), refused.end(), system);
  }
};

template <class T>
Answer<T> ask(const SolveProblem& problem, const std::vector<T>& a, const std::vector<T>& b,
              bool as_rows = true, SystemRoute route = SystemRoute::normal_equations) {
  const index_t m = problem.m, n = problem.n, systems = std::ssize(a) / (m * n);
  const index_t sides = std::ssize(b) / (m * systems);
  Answer<T> answer(systems, sides, n);
  const auto places = [&](index_t length) {
    return as_rows ? VectorPlaces::rows(length) : VectorPlaces::columns(length, sides);
  };
  const Plan plan = plan_of_r(problem);
  const auto device = make_system_device<T>(backend(), problem, plan, route);
  answer.refused = device->run(packed(a.data(), systems, m, n),
                               {.count = systems * sides,
                                .b = b.data(),
                                .b_places = places(m),
                                .x = answer.x.data(),
                                .se = problem.wants_se ? answer.se.data() : nullptr,
                                .x_places = places(n),
                                .reports = answer.reports,
                                .findings = answer.findings});
  return answer;
}

}  // namespace qrtool::test
