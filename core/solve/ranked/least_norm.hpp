// SPDX-License-Identifier: Apache-2.0
// least_norm.hpp: among the vectors with the same A x, the one of least norm, where columns may
// differ in size by any power of two. S is float64 or complex128.
//
//   A P = [B C] D,  C = B N      B, C: columns of norm 1, B independent;  D: powers of two
//   D P'x = [s; t],  s + N t = y     y: the basic solution;  A x is that of y whatever t is
//   x has the least norm where  t = M s,  M = D_C^2 N^H D_B^-2
//
//   (I + M N) t = M y,  s = y - N t
//   then t := M s                     orthogonal to what A does not see
//
// Columns of B and C are exchanged until no |n_ij| D_j / D_i is above 2, small n_ij left aside:
// the columns of B are then the large ones, as far as they are independent, and M and N have no
// large entries. With a B of small columns y and N t would cancel in x.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/solve/ranked/truncated_qr.hpp"

namespace qrtool {

template <class S>
class LeastNorm {
 public:
  using Matrix = typename TruncatedQr<S>::Matrix;
  using Vector = typename TruncatedQr<S>::Vector;

  /// n: N (rank x others). error: of each column of N, relative to its norm. sizes: the exponents
  /// of D.
  LeastNorm(Matrix n, double error, std::span<const int> sizes);

  /// Returns [s; t] for y.
  std::vector<S> solution(const std::vector<S>& y) const;

 private:
  void clear_rounding_errors(double error);
  bool exchange_columns();
  void exchange(index_t i, index_t j);
  void factor();
  Vector solved(Vector v) const;

  index_t rank_, others_;
  Matrix n_, m_;
  std::vector<int> sizes_;       // in the order of B and C
  std::vector<index_t> places_;  // of the columns of B and C, as they were
  struct Exchange {
    index_t row;
    Vector column;  // of N, before
  };
  std::vector<Exchange> exchanges_;
  std::optional<TruncatedQr<S>> qr_;  // of I + M N
};

}  // namespace qrtool
