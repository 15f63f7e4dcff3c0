// SPDX-License-Identifier: Apache-2.0
// judge.cpp: reports in units of the bar, and R alone beside its matrix.
#include "tests/support/judge.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <type_traits>
#include <vector>

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
Errors plain_errors(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, long double, double>;
  const index_t m = a.rows, n = a.cols, k = q.cols;
  std::vector<Wide> gram(static_cast<std::size_t>(k * k)), product(static_cast<std::size_t>(n));
  Wide of_a = 0, of_rest = 0, of_gram = 0;
  for (index_t i = 0; i < m; ++i) {
    for (index_t j = 0; j < n; ++j) product[static_cast<std::size_t>(j)] = a(i, j);
    for (index_t l = 0; l < k; ++l) {
      const Wide entry = q(i, l);
      for (index_t j = l; j < n; ++j) product[static_cast<std::size_t>(j)] -= entry * r(l, j);
      for (index_t j = l; j < k; ++j) gram[static_cast<std::size_t>(l * k + j)] += entry * q(i, j);
    }
    for (index_t j = 0; j < n; ++j) {
      of_a += static_cast<Wide>(a(i, j)) * a(i, j);
      of_rest += product[static_cast<std::size_t>(j)] * product[static_cast<std::size_t>(j)];
    }
  }
  for (index_t l = 0; l < k; ++l) {
    for (index_t j = l; j < k; ++j) {
      const Wide entry = gram[static_cast<std::size_t>(l * k + j)] - (j == l ? 1 : 0);
      of_gram += (j == l ? 1 : 2) * entry * entry;
    }
  }
  const auto root = [](Wide squares) { return static_cast<double>(std::sqrt(squares)); };
  return {.residual = of_a > 0 ? root(of_rest / of_a) : root(of_rest),
          .orthogonality = root(of_gram)};
}

template Errors plain_errors(MatrixView<const float>, MatrixView<const float>,
                             MatrixView<const float>);
template Errors plain_errors(MatrixView<const double>, MatrixView<const double>,
                             MatrixView<const double>);

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
