// SPDX-License-Identifier: Apache-2.0
// tall.hpp: QR of a matrix with many rows from the QR of its row blocks (TSQR). One pass over A
// gives R and a second pass gives Q. One n x n block per leaf is kept between the passes.
//
//     [A_0]   [Q_0          ] [R_0]        [R_0]   [Z_0]
//     [A_1] = [    Q_1      ] [R_1]        [R_1] = [Z_1] R        Q = [Q_0 Z_0]
//     [...]   [         ... ] [...]        [...]   [...]              [Q_1 Z_1]
//                                                                     [  ...  ]
//
// The stack of the R_i is factored the same way, level by level, until one R is left. Source:
// Demmel, Grigori, Hoemmen, Langou, "Communication-optimal parallel and sequential QR and LU
// factorizations", SIAM J. Sci. Comput. 34 (2012).
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "core/matrix/allocate_host.hpp"
#include "core/measure/magnitude.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tall_shape.hpp"
#include "core/report/report.hpp"

namespace qrtool {

/// Properties of rows that are found while the rows are factored.
struct LeafOutcome {
  Magnitude magnitude;
  bool r_fits = true;         // R is within the range of T
  Route route = Route::only;  // the slowest that a leaf took
  std::uint8_t tries = 1;     // 2 where a second try made a leaf

  void include(const LeafOutcome& other) {
    magnitude.include(other.magnitude);
    r_fits = r_fits && other.r_fits;
    route = std::max(route, other.route);
    tries = std::max(tries, other.tries);
  }
};

/// Factors the leaves of a tree; every backend implements it. `a` holds the rows of one or more
/// whole leaves; only the last leaf of the matrix may be shorter. A leaf of `rows` rows has
/// min(rows, n) rows in r and z. The same rows always give the same bits: the other leaves of a
/// call do not matter.
template <class T>
class LeafQr {
 public:
  virtual ~LeafQr() = default;

  /// Writes R_i of every leaf to r, one below the other. Where an entry of `a` is not finite, the
  /// content of r is undefined.
  virtual LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r) = 0;
  /// Writes Q_i Z_i of every leaf to q, which has the rows of a and the columns of z. Q_i belongs
  /// to the R_i that factor() gave.
  virtual void form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) = 0;
};

/// The tree above the leaves: it takes their R_i and gives R and the Z_i. Not thread-safe.
template <class T>
class TallTree {
 public:
  explicit TallTree(const TallShape& shape, const AllocateHost& allocate = allocate_host);
  /// Returns the bytes that the constructor allocates.
  static std::size_t bytes(const TallShape& shape);

  const TallShape& shape() const { return shape_; }
  /// Combines the R of the leaves into R (k x n, exact +0 below the diagonal), with the signs that
  /// the reflectors give. With wants_z it also forms the Z_i, the blocks by which the Q of each
  /// leaf is multiplied. Returns false if R exceeds the range of T.
  MatrixView<T> nodes(index_t first, index_t count) const;

  /// Forms R (k x n, exact +0 below the diagonal), with the signs that the reflectors give, and
  /// with wants_z the Z_i. Returns false where R exceeds the range of T.
  bool combine(bool wants_z, MatrixView<T> r);
  /// Multiplies the rows of R and the columns of the Z_i by `signs`, which has k entries, +1 or -1.
  void apply_signs(const std::vector<int>& signs, MatrixView<T> r) const;

 private:
  TallShape shape_;
  std::vector<MatrixView<T>> levels_;  // stacks of R factors; the Q of a node overwrites its rows
  HostMemory memory_;
};

/// The signs that make R_ii >= 0.
template <class T>
std::vector<int> positive_signs(MatrixView<const T> r, index_t k);

/// The signs that LAPACK's Householder reflectors give, computed from the top k x k block of Q:
/// step j of an elimination without pivoting shows the entry whose sign decides reflector j. Where
/// `is_all` says that Q has no other rows, the last reflector has a single entry, and is I where
/// that is real. All diagonal entries of R are real. Source: Ballard, Demmel, Grigori, Jacquelin,
/// Nguyen, Solomonik, "Reconstructing Householder vectors from TSQR" (LAPACK orhr_col).
template <class T>
std::vector<int> lapack_signs(MatrixView<const T> q_top, bool is_all = false);

/// Forms R with the given signs, and with wants_z the Z_i, after every leaf was factored into
/// `tree`. `top` holds the rows of A in the first leaf; only Sign::lapack reads it. Returns false
/// where R overflows.
template <class T>
bool finish_r(TallTree<T>& tree, Sign sign, bool wants_z, LeafQr<T>& leaves,
              MatrixView<const T> top, MatrixView<T> r);

}  // namespace qrtool
