// SPDX-License-Identifier: Apache-2.0
// error_probe.hpp: estimates the errors of a factorization from products with random vectors, in a
// fraction of the time that ErrorMeter takes for a matrix of many columns.
//
//   residual       ||(A - QR) X|| / (8^(1/2) ||A||)     (without Q: ||(A'A - R'R) X|| / ...)
//   orthogonality  ||(I - Q'Q) Y|| / 32^(1/2)
//   lower          exact, as are ||A|| and the ratio of R's diagonal
//
// X has 8 and Y has 32 columns of standard normal numbers, which are always the same: those of
// normal(0x9e0be, 2 and 3, ...).
//
// How far such an estimate may be below the true norm ||E||. With s vectors g and the singular
// values a_j of E, the square of the estimate is the mean of ||E g||^2, whose distribution is that
// of sum_j a_j^2 c_j / s with independent chi-squared c_j of s degrees of freedom. For every z > 0
// and p_j = a_j^2 / ||E||^2
//
//     mean of exp(-z sum_j p_j c_j) = prod_j (1 + 2 z p_j)^(-s/2) <= (1 + 2 z)^(-s/2),
//
// since the product is at least 1 + 2 z sum_j p_j. So the worst E has rank one, and Markov's
// inequality with the best z gives, for every t < 1 and every E that does not depend on X and Y
// (somebody who knows the vectors can hide an error from them),
//
//     P(estimate^2 <= t ||E||^2) <= (t exp(1 - t))^(s/2).
//
// This is 1e-9 at t = 1/21.97^2 for s = 8, and at t = 1/2.978^2 for s = 32. The orthogonality needs
// the more exact estimate: rounding a square Q to its type already leaves a quarter of the bar.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/batch.hpp"
#include "core/measure/error_meter.hpp"
#include "core/problem/problem.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

inline constexpr index_t residual_vectors = 8, orthogonality_vectors = 32;
/// Estimates times these factors are upper bounds with a probability of 1 - 1e-9.
inline constexpr double residual_factor = 21.97, orthogonality_factor = 2.978;

/// Estimates matrices of one shape, one after another. Rows of A and Q may come in several calls.
/// The estimates do not depend on the number of threads, nor on the calls if every call except the
/// last one brings a multiple of ErrorMeter::tile_rows(). Workspace: workspace_bytes(). Not
/// thread-safe: each thread needs its own probe.
class ErrorProbe {
 public:
  /// A call brings `rows` rows at the most. q_cols = 0 means that there is no Q. r_rows is k, or m
  /// for a complete factorization.
  ErrorProbe(index_t rows, index_t n, index_t q_cols, index_t r_rows, int most_threads = 1);
  ~ErrorProbe();
  ErrorProbe(ErrorProbe&&) noexcept;

  static std::size_t workspace_bytes(index_t rows, index_t n, index_t q_cols, index_t r_rows,
                                     int most_threads = 1);
  /// Whether an estimate takes much less time than ErrorMeter.
  static bool pays(index_t m, index_t n, index_t q_cols);

  /// The threads that share a matrix from now on, at most most_threads.
  void use_threads(int threads);

  /// Begins a matrix, given R and the scale of A (Magnitude::scale).
  template <class T>
  void start(MatrixView<const T> r, int scale);
  /// Adds the next rows of A and of Q, which is ignored if there is no Q.
  template <class T>
  void add_rows(MatrixView<const T> a, MatrixView<const T> q);
  /// Returns the estimates of the matrix, once all its rows were added.
  Errors finish();

  /// Estimates the errors of a matrix whose rows come in one call.
  template <class T>
  Errors estimate(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r, int scale) {
    start(r, scale);
    add_rows(a, q);
    return finish();
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the errors that the true ones exceed with a probability of 1e-9 each.
Errors upper_bounds(const Errors& estimates);

/// Finds the errors of matrices of one shape, one after another, for Check::full or Check::probe:
/// it returns the estimates if their upper bounds are within the bars, and measures the errors
/// otherwise.
class ErrorFinder {
 public:
  /// The shapes of Q and R, as ErrorMeter has them, and the threads at the most. The errors of
  /// complex matrices are always measured.
  struct Shape {
    index_t m, n, q_cols, r_rows;
    int most_threads = 1;
    bool is_complex = false;
  };
  using BarsOf = std::function<Bars(const Errors&)>;

  ErrorFinder(const Shape& shape, Check check);
  static std::size_t workspace_bytes(const Shape& shape, Check check);

  void use_threads(int threads);
  /// `bars_of` returns the bars for estimates.
  template <class T>
  Errors find(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r, int scale,
              const BarsOf& bars_of);

 private:
  Shape shape_;
  int threads_;
  std::optional<ErrorProbe> probe_;
  std::optional<ErrorMeter> meter_;  // made when it is needed
};

}  // namespace qrtool
