// SPDX-License-Identifier: Apache-2.0
// ratios.cpp: the bars, and the judgement by them.
#include "core/report/ratios.hpp"

#include <algorithm>
#include <cmath>

namespace qrtool {

namespace {

/// Returns sqrt(mn) denormals over ||A||, or 0 if that is negligible beside the bar of any shape,
/// as for all float64 numbers of common size: arithmetic with denormals takes as long as measuring
/// a small matrix.
double rounding_to_denormals(double entries, Precision precision, const Errors& errors) {
  constexpr int negligible_exponent = -300;
  constexpr double least_norm = 0x1p-100;
  if (!(errors.norm > 0)) return 0;
  const int exponent = precision.denormal_exponent - errors.scale;
  if (exponent < negligible_exponent && errors.norm > least_norm) return 0;
  return std::ldexp(std::sqrt(entries), exponent) / errors.norm;
}

}  // namespace

Bars standard_bars(index_t m, index_t n, Precision precision, const Errors& errors) {
  const auto rows = static_cast<double>(m), k = static_cast<double>(std::min(m, n));
  const double bar = precision.u * std::min(std::max(rows, 16.0), 30 * k);
  // Rounding each entry to a denormal number can make an error of sqrt(mn) denormals.
  const double residual =
      bar + rounding_to_denormals(rows * static_cast<double>(n), precision, errors);
  return {residual, bar, rows * precision.u};
}

Bars m_eps_bars(index_t m) {
  const double bar = static_cast<double>(m) * 0x1p-23;
  return {bar, bar, bar};
}

Status judge(const Errors& errors, const Bars& bars, bool has_q) {
  const bool ok = errors.residual <= bars.residual && errors.lower <= bars.lower &&
                  (!has_q || errors.orthogonality <= bars.orthogonality);
  return ok ? Status::ok : Status::above_bar;
}

void enter_errors(const Problem& problem, const Errors& errors, MatrixReport& report) {
  const Bars bars = standard_bars(problem.m, problem.n, precision_of(problem), errors);
  report.residual = errors.residual;
  report.orthogonality = errors.orthogonality;
  report.lower = errors.lower;
  report.diagonal_ratio = errors.diagonal_ratio;
  report.bars = bars;
  report.status = judge(errors, bars, problem.mode != Mode::r);
}

Errors errors_of(const MatrixReport& line) {
  return {.residual = line.residual,
          .orthogonality = line.orthogonality,
          .lower = line.lower,
          .diagonal_ratio = line.diagonal_ratio,
          .scale = line.scale};
}

void judge_again(const Problem& problem, MatrixReport& line) {
  const double for_denormals = line.bars.residual - line.bars.orthogonality;
  line.bars = standard_bars(problem.m, problem.n, precision_of(problem), {});
  line.bars.residual += for_denormals;
  line.status = judge(errors_of(line), line.bars, problem.mode != Mode::r);
}

}  // namespace qrtool
