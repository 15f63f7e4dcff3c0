// SPDX-License-Identifier: Apache-2.0
// ratios.hpp: the errors of a factorization and the one bar that judges them.
//
//   residual       ||A - QR|| / ||A||        (R alone: ||A'A - R'R|| / ||A||^2, a weaker check)
//   orthogonality  ||I - Q'Q||               (R alone: NaN)
//   lower          ||strictly lower part of R|| / ||A||
//
// Frobenius norms, sums in float64 on data scaled by a power of two, u = 2^-23 (float32) or 2^-52.
// ||R - Q'A|| is never used: with a reduced Q it cannot see what lies outside the range of Q.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/problem.hpp"
#include "core/report.hpp"

namespace qrtool {

/// Rounding unit and range of the type that Q and R are stored in.
struct Precision {
  double u;
  int denormal_exponent;  // smallest positive number is 2^denormal_exponent
};
inline constexpr Precision single_precision{0x1p-23, -149};
inline constexpr Precision double_precision{0x1p-52, -1074};
/// What --precision mixed promises.
inline constexpr Precision mixed_precision{0x1p-10, -149};
inline Precision precision_of(ElementType type) {
  return type == ElementType::float32 ? single_precision : double_precision;
}
inline Precision precision_of(const Problem& p) {
  const bool is_mixed = p.type == ElementType::float32 && p.arithmetic == Arithmetic::mixed;
  return is_mixed ? mixed_precision : precision_of(p.type);
}

/// The errors of one matrix, with the norm that the residual's bar needs.
struct Errors {
  double residual = not_measured;
  double orthogonality = not_measured;
  double lower = not_measured;
  double diagonal_ratio = not_measured;
  double norm = 0;  // ||A|| * 2^-scale
  int scale = 0;
};

/// What each error may be at the most.
struct Bars {
  double residual, orthogonality, lower;
};

/// The bar of qrtool: u min(max(m, 16), 30 k) for residual and orthogonality, k = min(m, n); the
/// residual's plus sqrt(mn) times the smallest denormal over ||A||; m u for lower.
Bars standard_bars(index_t m, index_t n, Precision precision, const Errors& errors);

/// The published bars to the letter: m 2^-23 for all three, whatever the type.
Bars m_eps_bars(index_t m);

/// ok or above_bar. NaN fails; the orthogonality of an R-only result (q_cols = 0) is not judged.
Status judge(const Errors& errors, const Bars& bars, bool has_q);

/// The errors of a matrix, judged by the standard bars, into its line of the report.
void enter_errors(const Problem& problem, const Errors& errors, MatrixReport& report);

/// The largest |a_ij|, and whether all entries are finite.
struct Magnitude {
  double largest = 0;
  bool finite = true;

  /// Exponent e with largest in [2^(e-1), 2^e); 0 for 0 or where an entry is not finite.
  int scale() const;
  /// Of two parts of one matrix taken together.
  void include(const Magnitude& other);
};
template <class T>
Magnitude magnitude_of(MatrixView<const T> a);

/// Measures one matrix after another of a fixed shape, a few rows of A and Q at a time, so that a
/// matrix larger than memory can be measured too. The sums do not depend on how rows are handed in.
/// Workspace: workspace_bytes(). Not thread-safe: one meter per thread.
class ErrorMeter {
 public:
  /// q_cols = 0: R alone. r_rows: k, or m for a complete factorization.
  ErrorMeter(index_t m, index_t n, index_t q_cols, index_t r_rows);
  ~ErrorMeter();
  ErrorMeter(ErrorMeter&&) noexcept;

  /// Rows are handed in by multiples of this many; only a matrix's last call may hold fewer.
  index_t tile_rows() const;
  static std::size_t workspace_bytes(index_t m, index_t n, index_t q_cols, index_t r_rows);

  /// Begins a matrix with R (r_rows x n) and the magnitude of A.
  template <class T>
  void start(MatrixView<const T> r, int scale);
  /// The next rows of A (rows x n) and of Q (rows x q_cols; ignored for R alone).
  template <class T>
  void add_rows(MatrixView<const T> a, MatrixView<const T> q);
  Errors finish();

  /// What add_rows has summed up since start(), and the sums of another meter of the same shape,
  /// scale and R: rows can be measured in parts, and the parts' sums added in a fixed order.
  int scale() const;
  std::vector<double> sums() const;
  void add_sums(std::span<const double> sums);

  /// start, add_rows and finish for a matrix that is in memory.
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

/// meter.add_rows(a, q) for many rows, parts of them on several threads; r is what the meter was
/// started with. The sums do not depend on how many threads.
template <class T>
void add_rows_by_parts(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                       int threads, ErrorMeter& meter);

/// Q (m x q_cols, row-major) from LAPACK geqrf's reflectors: v is V\R (m x n), tau has k entries.
/// Computed in float64. Source: LAPACK orgqr.
template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<double> q);

}  // namespace qrtool
