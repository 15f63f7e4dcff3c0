// SPDX-License-Identifier: Apache-2.0
// ratios.hpp: the errors of a factorization, and the bars that judge them.
//
//   residual       ||A - QR|| / ||A||        (without Q: ||A'A - R'R|| / ||A||^2, a weaker check)
//   orthogonality  ||I - Q'Q||               (without Q: NaN)
//   lower          ||strictly lower part of R|| / ||A||
//
// Norms are Frobenius norms. Sums are in float64, on data scaled by a power of two. u = 2^-23 for
// float32 and 2^-52 for float64. ||R - Q'A|| is never used: with a reduced Q it does not see the
// part of A that is orthogonal to Q's columns.
#pragma once

#include "core/problem/problem.hpp"
#include "core/report/report.hpp"

namespace qrtool {

/// The rounding unit and the smallest number of the type that Q and R are stored in. A complex type
/// has the precision of its parts.
struct Precision {
  double u;
  int denormal_exponent;  // smallest positive number is 2^denormal_exponent
};
inline constexpr Precision single_precision{0x1p-23, -149};
inline constexpr Precision double_precision{0x1p-52, -1074};
/// The accuracy that --precision mixed promises.
inline constexpr Precision mixed_precision{0x1p-10, -149};
inline Precision precision_of(ElementType type) {
  return real_of(type) == ElementType::float32 ? single_precision : double_precision;
}
inline Precision precision_of(const Problem& p) {
  const bool is_mixed = p.type == ElementType::float32 && p.arithmetic == Arithmetic::mixed;
  return is_mixed ? mixed_precision : precision_of(p.type);
}

/// Matrices of at most this many rows have the lowest bar: the rounding errors of good factors come
/// near it.
inline constexpr index_t rows_near_bar = 48;

/// The errors of one matrix, and its norm, from which the bar of the residual is computed.
struct Errors {
  double residual = not_measured;
  double orthogonality = not_measured;
  double lower = not_measured;
  double diagonal_ratio = not_measured;
  double norm = 0;  // ||A|| * 2^-scale
  int scale = 0;
};

/// Returns the bars of qrtool: u min(max(m, 16), 30 k) for residual and orthogonality, k = min(m,
/// n), and m u for lower. The bar of the residual is larger by sqrt(mn) times the smallest denormal
/// over ||A||, the rounding error of denormal numbers.
Bars standard_bars(index_t m, index_t n, Precision precision, const Errors& errors);

/// Returns the published bars to the letter: m 2^-23 for all three errors, for both types.
Bars m_eps_bars(index_t m);

/// Returns ok or above_bar. An error that is NaN fails. Without Q the orthogonality is not judged.
Status judge(const Errors& errors, const Bars& bars, bool has_q);

/// Judges the errors of a matrix by the standard bars. Writes the errors, the bars and the status
/// to its line of the report.
void enter_errors(const Problem& problem, const Errors& errors, MatrixReport& report);

/// Returns the errors in a line of the report, which does not hold ||A||.
Errors errors_of(const MatrixReport& line);

/// Judges the errors in a line by the precision of `problem`, if other arithmetic has made and
/// judged the factors. The part of the bar for denormal numbers stays.
void judge_again(const Problem& problem, MatrixReport& line);

}  // namespace qrtool
