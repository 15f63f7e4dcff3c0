// SPDX-License-Identifier: Apache-2.0
// rank_and_order.hpp: what R says about the rank and the condition of A, and the order of A's
// columns that column pivoting gives.
//
//   A = Q R,   R P = Q2 R2   =>   A P = (Q Q2) R2        R, R2: k x n, Q2: k x k, k = min(m, n)
//
// P brings the columns of R, and so those of A, into an order in which |r_ii| of R2 falls: column i
// is the one that has the most left after the columns before it were projected out. All is in
// float64, or in complex128 where A is complex. Source: LAPACK geqp3, applied to R.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/machine/comm.hpp"
#include "core/problem/problem.hpp"
#include "core/report/report.hpp"
#include "core/solve/ranked/ranked_factor.hpp"

namespace qrtool {

/// Reorders columns: column j of `a` becomes the former column permutation[j].
template <class T>
void permute_columns(MatrixView<T> a, std::span<const index_t> permutation);

/// Returns a permutation from its n numbers, which count from 0; they are of float64 or int64.
/// Errors: InputError, which names `p` of the matrix, if they are no permutation.
template <class Number>
std::vector<index_t> permutation_of(const Number* numbers, index_t n, const std::string& p,
                                    index_t matrix);

/// Pivots R of one matrix after another, in ranking_bytes(problem) of memory; S is float64 or
/// complex128. Not thread-safe: each thread needs its own object.
template <class S>
class RankAndOrder {
 public:
  explicit RankAndOrder(const Problem& problem);
  ~RankAndOrder();
  RankAndOrder(RankAndOrder&&) noexcept;

  /// Sets r (k x n), whose type T has the Wide<T> S; entries below its diagonal are ignored.
  /// `scale` is the scale of A.
  template <class T>
  void set(MatrixView<const T> r, int scale);
  /// Enters rank and condition, if they are asked for.
  void enter(MatrixReport& line) const;
  /// Whether the rank may not be decided on an R from A'A in float64, which has few correct digits
  /// left: the condition, with columns scaled to norm 1, is 1e7 or more.
  bool is_near_deficient() const { return !(factor_.scaled_condition() < 1e7); }

  /// Forms P, Q2 and R2, with a real r_ii >= 0.
  void pivot();
  /// Changes the signs of R2's rows and of Q2's columns for which `signs`, of k entries, is -1.
  void apply_signs(const std::vector<int>& signs);
  std::span<const index_t> permutation() const { return permutation_; }
  /// Sends P and Q2 from rank 0 to every rank.
  void share(Comm& comm);
  /// Returns min |r_ii| / max |r_ii| of R2, the triangular factor of the reordered R, or 0 if R2 =
  /// 0.
  double diagonal_ratio() const;
  /// r (k x n) := R2, with exact +0 below the diagonal.
  template <class T>
  void store_r(MatrixView<T> r) const;
  /// q := q Q2, for rows of Q's first k columns. The bits of a row depend on no other row.
  template <class T>
  void multiply(MatrixView<T> q, int threads) const;

 private:
  struct Pivoted;

  Problem problem_;
  RankRule rule_;
  int scale_ = 0;
  Batch<S> scaled_;  // R 2^-scale
  RankedFactor<S> factor_;
  std::vector<index_t> permutation_;
  std::unique_ptr<Pivoted> pivoted_;
};

}  // namespace qrtool
