// SPDX-License-Identifier: Apache-2.0
// tall_rows.cpp: weights, gaps and scales of rows.
#include "app/engine/tall_rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace qrtool {

template <class T>
RowFactors factors_of_rows(const SolveProblem& problem, const TallRows<T>& rows, const Real<T>* w) {
  RowFactors factors(rows.a.rows);
  if (w != nullptr) factors.weigh(w, 1);
  if (problem.skips_missing) {
    factors.leave_out(rows.a);
    factors.leave_out(rows.b.data, rows.b.ld);
  }
  return factors;
}

template <class T>
void pack_tall_rows(const SolveProblem& problem, const TallRows<T>& rows, const RowFactors& factors,
                    const RowScales& scales, MatrixView<T> ab, SweepFindings& found) {
  // Factors and scales are real: of complex numbers they multiply the parts.
  constexpr index_t parts = parts_of<T>;
  const MatrixView<const Real<T>> a = interleaved(rows.a), b = interleaved(rows.b);
  const index_t reals = parts * problem.n;
  found.rows_used += factors.used();
  const PowerOfTwoFactor of_a(-scales.a);
  std::vector<PowerOfTwoFactor> of_b;
  for (const int scale : scales.b) of_b.emplace_back(-scale);
  for (index_t i = 0; i < ab.rows; ++i) {
    auto* const row = reinterpret_cast<Real<T>*>(&ab(i, 0));
    std::fill_n(row, parts * ab.cols, Real<T>(0));
    if (i >= rows.a.rows) {
      const index_t j = rows.first + i - problem.m;
      row[parts * j] = static_cast<Real<T>>(of_a(problem.penalty(j)));
    }
    if (i >= rows.a.rows || factors[i] == 0) continue;
    for (index_t j = 0; j < reals; ++j) {
      row[j] = static_cast<Real<T>>(of_a(static_cast<double>(a(i, j)) * factors[i]));
      found.a_is_finite = found.a_is_finite && std::isfinite(a(i, j));
    }
    for (index_t j = 0; j < parts * (ab.cols - problem.n); ++j) {
      const index_t c = j / parts;
      if (!scales.is_zero[c])
        row[reals + j] = static_cast<Real<T>>(of_b[c](static_cast<double>(b(i, j)) * factors[i]));
      if (!std::isfinite(b(i, j))) found.b_is_finite[c] = 0;
    }
  }
}

#define QRTOOL_FOR(T)                                                                           \
  template RowFactors factors_of_rows(const SolveProblem&, const TallRows<T>&, const Real<T>*); \
  template void pack_tall_rows(const SolveProblem&, const TallRows<T>&, const RowFactors&,      \
                               const RowScales&, MatrixView<T>, SweepFindings&);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
