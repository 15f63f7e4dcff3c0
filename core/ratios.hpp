// SPDX-License-Identifier: Apache-2.0
// ratios.hpp: measures the errors of a factorization and judges them by one bar.
//
//   residual       ||A - QR|| / ||A||        (without Q: ||A'A - R'R|| / ||A||^2, a weaker check)
//   orthogonality  ||I - Q'Q||               (without Q: NaN)
//   lower          ||strictly lower part of R|| / ||A||
//
// Norms are Frobenius norms. Sums are in float64, on data scaled by a power of two. u = 2^-23 for
// float32 and 2^-52 for float64. ||R - Q'A|| is never used: with a reduced Q it does not see the
// part of A that is orthogonal to Q's columns.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/problem.hpp"
#include "core/report.hpp"

namespace qrtool {

/// The rounding unit and the smallest number of the type that Q and R are stored in.
struct Precision {
  double u;
  int denormal_exponent;  // smallest positive number is 2^denormal_exponent
};
inline constexpr Precision single_precision{0x1p-23, -149};
inline constexpr Precision double_precision{0x1p-52, -1074};
/// The accuracy that --precision mixed promises.
inline constexpr Precision mixed_precision{0x1p-10, -149};
inline Precision precision_of(ElementType type) {
  return type == ElementType::float32 ? single_precision : double_precision;
}
inline Precision precision_of(const Problem& p) {
  const bool is_mixed = p.type == ElementType::float32 && p.arithmetic == Arithmetic::mixed;
  return is_mixed ? mixed_precision : precision_of(p.type);
}

/// The errors of one matrix, and its norm, from which the bar of the residual is computed.
struct Errors {
  double residual = not_measured;
  double orthogonality = not_measured;
  double lower = not_measured;
  double diagonal_ratio = not_measured;
  double norm = 0;  // ||A|| * 2^-scale
  int scale = 0;
};

/// The bars of qrtool: u min(max(m, 16), 30 k) for residual and orthogonality, k = min(m, n), and
/// m u for lower. The bar of the residual is larger by sqrt(mn) times the smallest denormal over
/// ||A||, the rounding error of denormal numbers.
Bars standard_bars(index_t m, index_t n, Precision precision, const Errors& errors);

/// The published bars to the letter: m 2^-23 for all three errors, for both types.
Bars m_eps_bars(index_t m);

/// Returns ok or above_bar. An error that is NaN fails. Without Q the orthogonality is not judged.
Status judge(const Errors& errors, const Bars& bars, bool has_q);

/// Judges the errors of a matrix by the standard bars. Writes the errors, the bars and the status
/// to its line of the report.
void enter_errors(const Problem& problem, const Errors& errors, MatrixReport& report);

/// The errors in a line of the report, which does not hold ||A||.
Errors errors_of(const MatrixReport& line);

/// Holds the errors in a line to the precision of `problem`, where other arithmetic than that of
/// `problem` has made and judged the factors. What the bar allows for denormal numbers stays.
void judge_again(const Problem& problem, MatrixReport& line);

/// The largest |a_ij| of a matrix, and whether all its entries are finite.
struct Magnitude {
  double largest = 0;
  bool finite = true;

  /// The exponent e with `largest` in [2^(e-1), 2^e); 0 where `largest` is 0 or an entry is not
  /// finite.
  int scale() const;
  /// Adds another part of the same matrix.
  void include(const Magnitude& other);
};
template <class T>
Magnitude magnitude_of(MatrixView<const T> a);

/// Measures matrices of one shape, one after another. It takes a few rows of A and Q at a time, so
/// that a matrix larger than memory can be measured, too. Only of a wide matrix without Q it keeps
/// all rows, which take as much memory as R. The sums do not depend on how many rows
/// each call brings. Their rounding errors are bounded in core/error_meter.cpp. Workspace:
/// workspace_bytes(). Not thread-safe: each thread needs its own meter.
class ErrorMeter {
 public:
  /// q_cols = 0 means that there is no Q. r_rows is k, or m for a complete factorization.
  ErrorMeter(index_t m, index_t n, index_t q_cols, index_t r_rows, int most_threads = 1);
  ~ErrorMeter();
  ErrorMeter(ErrorMeter&&) noexcept;

  /// Each call of add_rows brings a multiple of this many rows; only the last call for a matrix may
  /// bring another number.
  static index_t tile_rows();
  static std::size_t workspace_bytes(index_t m, index_t n, index_t q_cols, index_t r_rows,
                                     int most_threads = 1);

  /// The threads that share a matrix from now on, at most most_threads. Errors do not depend on
  /// them.
  void use_threads(int threads);

  /// Begins a matrix, given R (r_rows x n) and the scale of A (Magnitude::scale).
  template <class T>
  void start(MatrixView<const T> r, int scale);
  /// Adds the next rows of A (rows x n) and of Q (rows x q_cols; ignored where there is no Q).
  template <class T>
  void add_rows(MatrixView<const T> a, MatrixView<const T> q);
  /// Returns the errors of the matrix, once all its rows were added.
  Errors finish();

  int scale() const;
  /// Rows can be measured in parts by several meters of the same shape, scale and R: sums() gives
  /// the sums of all rows since start(), and add_sums() adds those of another meter. The result
  /// depends on the order in which they are added. Not for wide matrices without Q.
  std::vector<double> sums() const;
  static std::size_t number_of_sums(index_t m, index_t n, index_t q_cols);
  void add_sums(std::span<const double> sums);

  /// Measures a matrix that is in memory: start, add_rows and finish in one call.
  template <class T>
  Errors measure(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r, int scale) {
    start(r, scale);
    add_rows(a, q);
    return finish();
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How many rows are measured in parts of `rows` rows, on `threads` threads. Where the parts follow
/// from the shape alone, the sums do not depend on how many rows a call brings, as long as each
/// call brings whole parts, nor on the threads.
struct RowParts {
  index_t rows;
  int threads;
};

/// Does meter.add_rows(a, q) for many rows, part by part. r is the R that the meter was started
/// with.
template <class T>
void add_rows_by_parts(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                       const RowParts& parts, ErrorMeter& meter);

/// The sums() of every part, one after another, for add_sums_of_parts() on the meter of all rows.
/// `meter` was started with r.
template <class T>
std::vector<double> sums_of_parts(MatrixView<const T> a, MatrixView<const T> q,
                                  MatrixView<const T> r, const RowParts& parts,
                                  const ErrorMeter& meter);
void add_sums_of_parts(std::span<const double> sums, ErrorMeter& meter);

/// Forms Q (m x q_cols, row-major) from the reflectors of LAPACK's geqrf, in float64. v is V\R
/// (m x n) and tau has k entries. Source: LAPACK orgqr.
template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<double> q);

}  // namespace qrtool
