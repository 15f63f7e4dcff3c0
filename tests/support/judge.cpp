// SPDX-License-Identifier: Apache-2.0
// judge.cpp: reports in units of the bar, and R alone beside its matrix.
#include "tests/support/judge.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/report/ratios.hpp"
#include "tests/support/backward_error.hpp"

namespace qrtool::test {

double WorstErrors::worst() const { return std::max(residual, q_or_r); }

void WorstErrors::include(const WorstErrors& other) {
  matrices += other.matrices;
  above += other.above;
  residual = std::max(residual, other.residual);
  q_or_r = std::max(q_or_r, other.q_or_r);
}

std::ostream& operator<<(std::ostream& out, const WorstErrors& errors) {
  return out << errors.above << " of " << errors.matrices << " above: residual " << errors.residual
             << ", Q or R " << errors.q_or_r << " of the bar";
}

WorstErrors errors_in_bars(const Problem& p, const MatrixReport& report) {
  const Bars bars = standard_bars(p.m, p.n, precision_of(p), {});
  // A NaN instead of an error must not count as a small error.
  const auto in_bars = [](double error, double bar) {
    return std::isnan(error) ? INFINITY : error / bar;
  };
  const bool is_measured = p.wants_q() || !std::isnan(report.orthogonality);
  return {.matrices = 1,
          .above = report.status != Status::ok,
          .residual = in_bars(report.residual, bars.residual),
          .q_or_r = is_measured ? in_bars(report.orthogonality, bars.orthogonality) : 0};
}

template <class T>
void measure_r(const Problem& p, MatrixView<const T> a, MatrixView<const T> r,
               MatrixReport& report) {
  if (p.mode != Mode::r || p.m < p.n) return;
  if (p.type == ElementType::float64 && report.route != Route::first_pass) return;
  report.orthogonality = r_backward_error<T>(a, r);
  const double bar = standard_bars(p.m, p.n, precision_of(p), {}).residual;
  if (!(report.orthogonality <= bar)) report.status = Status::above_bar;
}

template void measure_r(const Problem&, MatrixView<const float>, MatrixView<const float>,
                        MatrixReport&);
template void measure_r(const Problem&, MatrixView<const double>, MatrixView<const double>,
                        MatrixReport&);

}  // namespace qrtool::test
