// SPDX-License-Identifier: Apache-2.0
// system_state.hpp: the state of a least-squares problem, to which further rows can be appended.
//
//     [A B] = Q [R Z]    G = [A B]^H [A B]    n + p rows [R Z] and [0 T] stand for all rows of
//               [0 T]                         [A B]; G, which is summed apart, checks them
//
// The rows of a state, with further rows below them, have the R, the x and the residual norms of
// all rows. No row is needed again. Source: LAWN 222 (updating the QR factorization), by blocks.
#pragma once

#include <vector>

#include "core/batch.hpp"
#include "core/matrix/complex.hpp"
#include "core/matrix/complex_arithmetic.hpp"

namespace qrtool {

/// G of some rows, on and above the diagonal, by plain sums of few rows and Kahan's sum of these.
template <class T>
class GramSum {
 public:
  using S = Wide<T>;

  explicit GramSum(index_t width)
      : width_(width), sum_(static_cast<std::size_t>(width * width)), rest_(sum_) {}

  void add(MatrixView<const T> rows);
  void add(const S* gram);
  const std::vector<S>& sum() const { return sum_; }

 private:
  index_t width_;
  std::vector<S> sum_, rest_;
};

/// Returns ||D (G - R^H R) D|| / ||A D||^2 for R (k x w) and G (w x w, on and above the diagonal),
/// where A D has columns of norm 1.
template <class T>
double state_error(MatrixView<const T> r, MatrixView<const Wide<T>> gram);

}  // namespace qrtool
