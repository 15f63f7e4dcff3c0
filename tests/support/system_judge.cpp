// SPDX-License-Identifier: Apache-2.0
// system_judge.cpp: compares reports of solutions with what core finds.
#include "tests/support/system_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/solve/ranked/triangular.hpp"
#include "tests/support/solution_error.hpp"

namespace qrtool::test {
namespace {

/// Returns what is wrong with an answer, or an empty text. `checked` and `even` are what core finds
/// for x, without weights and gaps in `evened`.
template <class T>
std::string complaint(const UnevenSystems<T>& s, const SystemAnswers<T>& answers,
                      const SystemAnswers<T>& checked, const UnevenSystems<double>& evened,
                      const SystemAnswers<double>& even, index_t i) {
  const SolutionReport &report = answers.reports[i], &of_core = checked.reports[i],
                       &of_even = even.reports[i];
  if (report.status != Status::ok)
    return fmt::format("{} and {} of its bar", report.backward_error / report.bar,
                       report.least_norm_error / report.bar);
  if (of_core.status != Status::ok)
    return fmt::format("{} of its bar by core", of_core.backward_error / of_core.bar);
  // The weighted rows are rounded.
  const double u = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  if (!(of_even.backward_error <= report.bar + u))
    return fmt::format("{} of its bar without weights and gaps",
                       of_even.backward_error / report.bar);
  const index_t m = s.systems.m, n = s.systems.n;
  const index_t rank = answers.findings.empty() ? n : answers.findings[i].rank;
  const ScaledErrors errors =
      scaled_errors({&evened.systems.a[i * m * n], m, n, n}, &evened.systems.b[i * m],
                    std::vector<double>(&answers.x[i * n], &answers.x[i * n] + n).data(), rank);
  if (!(errors.backward <= report.bar + u))
    return fmt::format("{} of its bar in 80 bits", errors.backward / report.bar);
  if (!std::isnan(report.least_norm_error) && !(errors.least_norm <= report.bar + u))
    return fmt::format("least norm {} of its bar in 80 bits", errors.least_norm / report.bar);
  const std::vector<double> x(&answers.x[i * n], &answers.x[i * n] + n);
  const double size = norm_of(&evened.systems.a[i * m * n], m * n) * norm_of(x.data(), n) +
                      norm_of(&evened.systems.b[i * m], m);
  // Both norms are roots of sums of m squares, in two orders.
  const double of_sums = static_cast<double>(m + 4) * 0x1p-53 * of_even.residual_norm;
  if (!(std::abs(report.residual_norm - of_even.residual_norm) <= 4 * u * size + of_sums))
    return fmt::format("residual norm {}, not {}", report.residual_norm, of_even.residual_norm);
  if (answers.findings.empty()) return {};
  const auto freedom = static_cast<double>(s.rows_used(i) - answers.findings[i].rank);
  if (report.freedom != freedom) return fmt::format("freedom {}, not {}", report.freedom, freedom);
  return {};
}

}  // namespace

void SystemTally::include(const SystemTally& other) {
  problems += other.problems;
  refused += other.refused;
  failed += other.failed;
  tries += other.tries;
  if (!(other.worst > worst)) return;
  worst = other.worst;
  worst_name = other.worst_name;
}

void SystemTally::fail(const std::string& name, const std::string& wrong) {
  ++failed;
  fmt::print("fails: {}: {}\n", name, wrong);
}

void SystemTally::print(std::string_view kind) const {
  fmt::print(
      "{:24} {} problems, {} refused, {} fail, {} by a second try; worst {:.3g} of its bar: "
      "{}\n",
      kind, problems, refused, failed, tries, worst, worst_name);
}

template <class T>
std::string name_of(const UnevenSystems<T>& s, index_t system, std::string_view kind) {
  return fmt::format("{} {}x{} {}, {}", name_of(element_type<T>), s.systems.m, s.systems.n,
                     s.systems.names[system], kind);
}

template <class T>
void judge_systems(const UnevenSystems<T>& s, const SystemAnswers<T>& answers,
                   std::string_view kind, SystemTally& tally) {
  const SystemAnswers<T> checked = check_on_cpu(s, answers.x);
  const UnevenSystems<double> evened = s.evened();
  const SystemAnswers<double> even =
      check_on_cpu(evened, std::vector<double>(answers.x.begin(), answers.x.end()));
  for (index_t i = 0; i < s.systems.count; ++i) {
    SystemTally one{.problems = 1, .worst_name = name_of(s, i, kind)};
    if (std::ranges::binary_search(answers.refused, i)) {
      one.refused = 1;
    } else {
      const SolutionReport& report = answers.reports[i];
      one.tries = report.tries > 1;
      one.worst = std::fmax(report.backward_error, report.least_norm_error) / report.bar;
      const std::string wrong = complaint(s, answers, checked, evened, even, i);
      if (!wrong.empty()) one.fail(one.worst_name, wrong);
    }
    tally.include(one);
  }
}

#define QRTOOL_FOR(T)                                                                             \
  template std::string name_of(const UnevenSystems<T>&, index_t, std::string_view);               \
  template void judge_systems(const UnevenSystems<T>&, const SystemAnswers<T>&, std::string_view, \
                              SystemTally&);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
#undef QRTOOL_FOR

}  // namespace qrtool::test
