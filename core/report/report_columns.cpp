// SPDX-License-Identifier: Apache-2.0
// report_columns.cpp: the words and the bars.
#include "core/report/report_columns.hpp"

#include "core/report/ratios.hpp"

namespace qrtool {
namespace {

constexpr std::string_view none = "none";

constexpr std::string_view estimated_residual =
    "an estimate, which is 21.97 times too small with a probability of 1e-9, except where this "
    "bound is above the bar: there it is measured";
constexpr std::string_view estimated_orthogonality =
    "an estimate, which is 2.978 times too small with a probability of 1e-9, except where this "
    "bound is above the bar: there it is measured";
constexpr std::string_view unmeasured = "not measured";

ReportColumn describe_residual(const Problem& problem, const Bars& bars) {
  const Mode mode = problem.mode;
  const bool is_weaker = mode == Mode::r;
  const bool pivots = problem.pivots;
  return {.name = "residual",
          .description = problem.check == Check::none    ? unmeasured
                         : problem.check == Check::probe ? estimated_residual
                         : is_weaker
                             ? "how far R'R is from A'A, relative to A; a weaker check than "
                               "one with Q"
                             : "how far the product of the factors is from A, relative to A",
          .formula = is_weaker && pivots ? "||B'B - R'R|| / ||A||^2, with B = A[:, P]"
                     : pivots            ? "||A[:, P] - Q R|| / ||A||"
                     : is_weaker         ? "||A'A - R'R|| / ||A||^2"
                     : mode == Mode::raw ? "||A - Q R|| / ||A||, with Q formed from V and tau"
                                         : "||A - Q R|| / ||A||",
          .unit = "1",
          .value = [](const MatrixReport& line) { return line.residual; },
          .bar_formula =
              "u min(max(m, 16), 30 min(m, n)) + sqrt(m n) d / ||A||, where d is the "
              "smallest positive number of the type",
          .bar = bars.residual};
}

ReportColumn describe_orthogonality(const Problem& problem, const Bars& bars) {
  const bool has_q = problem.mode != Mode::r;
  return {.name = "orthogonality",
          .description = !has_q                          ? "not measured: there is no Q"
                         : problem.check == Check::none  ? unmeasured
                         : problem.check == Check::probe ? estimated_orthogonality
                                                         : "how far the columns of Q are from "
                                                           "orthonormal",
          .formula = "||I - Q'Q||",
          .unit = "1",
          .value = [](const MatrixReport& line) { return line.orthogonality; },
          .bar_formula = has_q ? "u min(max(m, 16), 30 min(m, n))" : none,
          .bar = has_q ? bars.orthogonality : not_measured};
}

ReportColumn describe_rank() {
  return {.name = "rank",
          .description = "numerical rank; -1 where there are no factors",
          .formula =
              "the number of |s_ii| > t |s_11|, S: pivoted R with columns scaled to norm 1, "
              "t = u max(16, 2n)",
          .unit = "1",
          .kind = NumberKind::whole,
          .value = [](const MatrixReport& line) { return static_cast<double>(line.rank); },
          .bar_formula = none,
          .bar = not_measured};
}

ReportColumn describe_condition() {
  return {.name = "condition",
          .description =
              "an estimate of the condition number of A, seldom more than a few percent "
              "too small; NaN where there are no factors",
          .formula = "sigma_1 / sigma_k, k = min(m, n)",
          .unit = "1",
          .value = [](const MatrixReport& line) { return line.condition; },
          .bar_formula = none,
          .bar = not_measured};
}

}  // namespace

std::vector<ReportColumn> report_columns(const Problem& problem) {
  const Bars bars = standard_bars(problem.m, problem.n, precision_of(problem), {});
  std::vector<ReportColumn> columns{
      describe_residual(problem, bars),
      describe_orthogonality(problem, bars),
      ReportColumn{.name = "lower",
                   .description = "the size of R below its diagonal, relative to A",
                   .formula = "||strictly lower part of R|| / ||A||",
                   .unit = "1",
                   .value = [](const MatrixReport& line) { return line.lower; },
                   .bar_formula = "m u",
                   .bar = bars.lower},
      ReportColumn{.name = "diagonal_ratio",
                   .description = "a hint at the rank, not a condition number",
                   .formula = "min |r_ii| / max |r_ii|",
                   .unit = "1",
                   .value = [](const MatrixReport& line) { return line.diagonal_ratio; },
                   .bar_formula = none,
                   .bar = not_measured},
      ReportColumn{
          .name = "status",
          .description = "whether the matrix passed, or why not",
          .formula = "ok where residual, orthogonality and lower are within their bars",
          .unit = "enumeration",
          .kind = NumberKind::status,
          .value = [](const MatrixReport& line) { return static_cast<double>(line.status); },
          .bar_formula = none,
          .bar = not_measured},
      ReportColumn{
          .name = "scale",
          .description = "the exponent of the largest entry of A; 0 for A = 0",
          .formula = "2^(scale-1) <= max |a_ij| < 2^scale",
          .unit = "exponent of 2",
          .kind = NumberKind::whole,
          .value = [](const MatrixReport& line) { return static_cast<double>(line.scale); },
          .bar_formula = none,
          .bar = not_measured},
      ReportColumn{
          .name = "tries",
          .description = "2 where the factors, or a part of them, come from a second "
                         "try by Householder reflectors, 1 elsewhere",
          .formula = "number of tries",
          .unit = "1",
          .kind = NumberKind::byte,
          .value = [](const MatrixReport& line) { return static_cast<double>(line.tries); },
          .bar_formula = none,
          .bar = not_measured}};
  if (problem.pivots) columns.push_back(describe_rank());
  if (problem.wants_condition) columns.push_back(describe_condition());
  return columns;
}

}  // namespace qrtool
