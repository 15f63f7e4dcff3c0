// SPDX-License-Identifier: Apache-2.0
// system_state.cpp: sums of products, and how R agrees with them.
#include "core/solve/engines/system_state.hpp"

#include <cmath>
#include <complex>

#include "core/eigen/row_sum.hpp"

namespace qrtool {

template <class T>
void add_gram(MatrixView<const T> rows, RowSum<Wide<T>>& gram) {
  gram.add(rows.rows, [&](index_t first, index_t count) {
    RowMajor<Wide<T>> run = mapped(rows.row_block(first, count)).template cast<Wide<T>>();
    add_adjoint_product(view_of(run), view_of(run), view_of(gram.tile));
  });
}

template <class T>
double state_error(MatrixView<const T> r, MatrixView<const Wide<T>> gram) {
  using S = Wide<T>;
  const RowMajor<S> of_r = mapped(r).template cast<S>();
  const auto of_a = mapped(gram);
  // A column of zeros has the norm 1, too: then nothing divides by 0.
  const auto norm = [&](index_t j) {
    const double squares = std::abs(of_a(j, j));
    return squares == 0 ? 1.0 : std::sqrt(squares);
  };
  const RowMajor<S> difference = of_a - of_r.adjoint() * of_r;
  double squares = 0;
  for (index_t i = 0; i < r.cols; ++i)
    for (index_t j = i; j < r.cols; ++j) {
      const double entry = std::abs(difference(i, j)) / norm(i) / norm(j);
      squares += (i == j ? 1 : 2) * entry * entry;
    }
  return std::sqrt(squares) / static_cast<double>(r.cols);
}

#define QRTOOL_FOR(T)                                            \
  template void add_gram(MatrixView<const T>, RowSum<Wide<T>>&); \
  template double state_error(MatrixView<const T>, MatrixView<const Wide<T>>);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
