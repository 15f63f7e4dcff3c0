// SPDX-License-Identifier: Apache-2.0
// uneven_systems.cpp: chooses weights and missing entries.
#include "tests/support/uneven_systems.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "tests/support/draw.hpp"

namespace qrtool::test {
namespace {

template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

bool one_in(index_t n, Draw& draw) { return draw.whole(0, n - 1) == 0; }

/// Returns rows in random order: at most `spare` of m, but any number once in eight calls.
std::vector<index_t> some_rows(index_t m, index_t spare, Draw& draw) {
  std::vector<index_t> rows = draw.places(m);
  rows.resize(static_cast<std::size_t>(draw.whole(0, one_in(8, draw) ? m : spare)));
  return rows;
}

/// Adds m weights, some of them 0: the others are all near 1, a quarter of any size, or all of any
/// size. Returns how many are 0.
template <class T>
index_t add_weights(index_t m, index_t spare, Draw& draw, std::vector<T>& w) {
  const index_t spread = draw.whole(0, 2), first = std::ssize(w);
  for (index_t i = 0; i < m; ++i) {
    const bool is_any = spread == 2 || (spread == 1 && one_in(4, draw));
    w.push_back(static_cast<T>(is_any ? draw.power_of_ten(-12, 12) : draw.between(0.5, 2)));
  }
  const std::vector<index_t> zeros = some_rows(m, spare, draw);
  for (const index_t i : zeros) w[first + i] = 0;
  return std::ssize(zeros);
}

/// Leaves a row of n entries and its b out.
template <class T>
void make_gap(T* row, index_t n, T& b, Draw& draw) {
  const index_t place = draw.whole(0, 2);
  if (one_in(8, draw)) row[draw.whole(0, n - 1)] = b = infinity<T>;
  if (place != 1) row[draw.whole(0, n - 1)] = nan<T>;
  if (place != 0) b = nan<T>;
}

template <class T>
SystemAnswers<T> run_on_cpu(const UnevenSystems<T>& s, const SolveProblem& problem,
                            std::vector<T> x) {
  const index_t count = s.systems.count;
  SystemAnswers<T> answer{.x = std::move(x),
                          .reports = std::vector<SolutionReport>(static_cast<std::size_t>(count)),
                          .findings = std::vector<MatrixFindings>(static_cast<std::size_t>(count)),
                          .refused = {}};
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  CpuBackend cpu(limits);
  const Plan plan =
      make_plan(SystemEngine<T>::factored_problem(problem, count, 1), cpu.variants(), limits);
  SystemEngine<T>(problem, cpu, plan, limits.threads)
      .run(s.refs(), s.block(answer.x, answer.reports, answer.findings));
  return answer;
}

}  // namespace

std::string name_of(const RowRule& rule) {
  if (rule.weights == Weights::none) return rule.has_gaps ? "gaps" : "plain";
  const std::string weights =
      rule.weights == Weights::of_all ? "weights of all" : "weights of each";
  return rule.has_gaps ? weights + " and gaps" : weights;
}

template <class T>
SolveProblem problem_of(const HardSystems<T>& systems, const RowRule& rule) {
  return {.type = element_type<T>,
          .m = systems.m,
          .n = systems.n,
          .rank = {.tolerance = default_rank_tolerance(element_type<T>, systems.n)},
          .ridge = rule.ridge,
          .has_weights = rule.weights != Weights::none,
          .skips_missing = rule.has_gaps,
          .takes_few_rows = true};
}

template <class T>
std::vector<SystemRef<T>> UnevenSystems<T>::refs() const {
  std::vector<SystemRef<T>> out;
  for (index_t i = 0; i < systems.count; ++i)
    out.push_back({systems.a.data() + i * systems.m * systems.n, i});
  return out;
}

template <class T>
RightSideBlock<T> UnevenSystems<T>::block(std::vector<T>& x, std::vector<SolutionReport>& reports,
                                          std::vector<MatrixFindings>& findings) const {
  return {.count = systems.count,
          .b = systems.b.data(),
          .b_places = VectorPlaces::rows(systems.m),
          .w = w.empty() ? nullptr : w.data(),
          .w_places = rule.weights == Weights::of_each ? VectorPlaces::rows(systems.m)
                                                       : VectorPlaces{1, 0, 0, 1},
          .x = x.data(),
          .x_places = VectorPlaces::rows(systems.n),
          .reports = reports,
          .findings = findings};
}

template <class T>
index_t UnevenSystems<T>::rows_used(index_t system) const {
  const auto first = factors.begin() + system * systems.m;
  return systems.m - std::count(first, first + systems.m, 0.0);
}

template <class T>
UnevenSystems<double> UnevenSystems<T>::evened() const {
  const index_t m = systems.m, n = systems.n;
  HardSystems<double> out{.m = m,
                          .n = n,
                          .count = systems.count,
                          .a = {},
                          .b = {},
                          .names = systems.names,
                          .is_graded = systems.is_graded};
  for (index_t row = 0; row < systems.count * m; ++row) {
    const double factor = factors[row];
    const auto even = [&](T x) { return factor == 0 ? 0.0 : factor * static_cast<double>(x); };
    for (index_t j = 0; j < n; ++j) out.a.push_back(even(systems.a[row * n + j]));
    out.b.push_back(even(systems.b[row]));
  }
  return {.rule = {}, .systems = out, .w = {}, .factors = std::vector(factors.size(), 1.0)};
}

template <class T>
UnevenSystems<T> make_uneven_systems(const HardSystems<T>& systems, const RowRule& rule,
                                     std::uint64_t seed) {
  UnevenSystems<T> out{.rule = rule, .systems = systems, .w = {}, .factors = {}};
  const index_t m = systems.m, n = systems.n;
  const index_t spare = std::max<index_t>(m - n, 0);
  Draw draw(mix_bits(seed), 0);
  index_t zeros = 0;
  if (rule.weights == Weights::of_all) zeros = add_weights(m, spare, draw, out.w);
  for (index_t i = 0; i < systems.count; ++i) {
    if (rule.weights == Weights::of_each) zeros = add_weights(m, spare, draw, out.w);
    T* a = out.systems.a.data() + i * m * n;
    T* b = out.systems.b.data() + i * m;
    for (index_t r = 0; r < m; ++r) {
      const bool is_shared = rule.weights == Weights::of_all;
      const T w = out.w.empty() ? T(1) : out.w[is_shared ? r : i * m + r];
      out.factors.push_back(std::sqrt(static_cast<double>(w)));
      if (w != 0 || one_in(2, draw)) continue;
      // A number that does not count, whatever it is.
      (one_in(4, draw) ? b[r] : a[r * n + draw.whole(0, n - 1)]) =
          one_in(2, draw) ? nan<T> : infinity<T>;
    }
    if (!rule.has_gaps) continue;
    for (const index_t r : some_rows(m, std::max<index_t>(spare - zeros, 0), draw)) {
      make_gap(a + r * n, n, b[r], draw);
      out.factors[i * m + r] = 0;
    }
  }
  return out;
}

template <class T>
SystemAnswers<T> solve_on_cpu(const UnevenSystems<T>& s) {
  return run_on_cpu(s, s.problem(),
                    std::vector<T>(static_cast<std::size_t>(s.systems.count * s.systems.n)));
}

template <class T>
SystemAnswers<T> check_on_cpu(const UnevenSystems<T>& s, std::vector<T> x) {
  SolveProblem problem = s.problem();
  problem.only_checks = true;
  return run_on_cpu(s, problem, std::move(x));
}

#define QRTOOL_FOR(T)                                                                  \
  template struct UnevenSystems<T>;                                                    \
  template SolveProblem problem_of(const HardSystems<T>&, const RowRule&);             \
  template UnevenSystems<T> make_uneven_systems(const HardSystems<T>&, const RowRule&, \
                                                std::uint64_t);                        \
  template SystemAnswers<T> solve_on_cpu(const UnevenSystems<T>&);                     \
  template SystemAnswers<T> check_on_cpu(const UnevenSystems<T>&, std::vector<T>);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
#undef QRTOOL_FOR

}  // namespace qrtool::test
