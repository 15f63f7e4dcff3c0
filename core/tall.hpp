// SPDX-License-Identifier: Apache-2.0
// tall.hpp: QR of a matrix with many rows, from the QR of its row blocks (TSQR): R in one pass over
// A, Q in a second, with one n x n block per leaf kept in between.
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

#include <functional>
#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "core/problem.hpp"
#include "core/ratios.hpp"
#include "core/tall_shape.hpp"

namespace qrtool {

/// What is found out about rows while they are factored.
struct LeafOutcome {
  Magnitude magnitude;
  bool r_fits = true;  // R within the range of T

  void include(const LeafOutcome& other) {
    magnitude.include(other.magnitude);
    r_fits = r_fits && other.r_fits;
  }
};

/// Factors the leaves of a tree: what a backend does with row blocks. `a` holds the rows of whole
/// leaves, the last of which may be the matrix's last and shorter; leaf i of `a` has min(rows, n)
/// rows in r and z. The same rows give the same bits, whatever else is in a call.
template <class T>
class LeafQr {
 public:
  virtual ~LeafQr() = default;

  /// R_i of every leaf, one below the other. Where an entry is not finite r holds nothing of
  /// meaning.
  virtual LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r) = 0;
  /// Q_i Z_i of every leaf (q: rows of a, columns of z), with the Q_i that belongs to factor's R_i.
  virtual void form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) = 0;
};

using AllocateHost = std::function<HostMemory(std::size_t bytes)>;

/// The tree above the leaves: takes their R_i, gives R and the Z_i. Not thread-safe.
template <class T>
class TallTree {
 public:
  explicit TallTree(const TallShape& shape, const AllocateHost& allocate = allocate_host);
  /// What `allocate` is asked for, all in all.
  static std::size_t bytes(const TallShape& shape);

  const TallShape& shape() const { return shape_; }
  /// R_i of leaves first .. first + count - 1, to be filled in; after combine() with wants_z their
  /// Z_i, k columns wide.
  MatrixView<T> nodes(index_t first, index_t count) const;

  /// R (k x n, exact +0 below the diagonal) with whatever signs the reflectors leave; false where
  /// it exceeds the range of T.
  bool combine(bool wants_z, MatrixView<T> r);
  /// Flips rows of R and columns of the Z_i: signs has k entries of +1 or -1.
  void apply_signs(const std::vector<int>& signs, MatrixView<T> r) const;

 private:
  TallShape shape_;
  std::vector<MatrixView<T>> levels_;  // stacks of R factors; a node's Q takes its rows' place
  HostMemory memory_;
};

/// Signs that make R_ii >= 0.
template <class T>
std::vector<int> positive_signs(MatrixView<const T> r, index_t k);

/// Signs that LAPACK's Householder reflectors leave, from R and the top k x k block of Q: step j of
/// an elimination without pivoting shows the entry that reflector j is chosen by. Source: Ballard,
/// Demmel, Grigori, Jacquelin, Nguyen, Solomonik, "Reconstructing Householder vectors from TSQR"
/// (LAPACK orhr_col).
template <class T>
std::vector<int> lapack_signs(MatrixView<const T> q_top);

/// Once every leaf is factored into `tree`: R with the signs asked for, and the Z_i where wants_z.
/// `top` holds the first leaf's rows; needed for Sign::lapack alone. False where R overflows.
template <class T>
bool finish_r(TallTree<T>& tree, Sign sign, bool wants_z, LeafQr<T>& leaves,
              MatrixView<const T> top, MatrixView<T> r);

}  // namespace qrtool
