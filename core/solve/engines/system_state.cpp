// SPDX-License-Identifier: Apache-2.0
// system_state.cpp: sums of products, and how R agrees with them.
#include "core/solve/engines/system_state.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

namespace qrtool {
namespace {

/// The rows of a plain sum. Equal terms bias it by up to so many units of float64.
constexpr index_t rows_of_sum = 32;

}  // namespace

template <class T>
void GramSum<T>::add(MatrixView<const T> rows) {
  std::vector<S> part(sum_.size()), row(static_cast<std::size_t>(width_));
  for (index_t first = 0; first < rows.rows; first += rows_of_sum) {
    std::ranges::fill(part, S(0));
    for (index_t r = first; r < std::min(first + rows_of_sum, rows.rows); ++r) {
      std::copy_n(&rows(r, 0), width_, row.begin());
      for (index_t i = 0; i < width_; ++i)
        for (index_t j = i; j < width_; ++j)
          part[i * width_ + j] += product(conjugate(row[i]), row[j]);
    }
    add(part.data());
  }
}

template <class T>
void GramSum<T>::add(const S* gram) {
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const S term = gram[i] - rest_[i], next = sum_[i] + term;
    rest_[i] = (next - sum_[i]) - term;
    sum_[i] = next;
  }
}

template <class T>
double state_error(MatrixView<const T> r, MatrixView<const Wide<T>> gram) {
  using S = Wide<T>;
  const index_t width = gram.rows;
  std::vector<double> norms;
  double size = 0, squares = 0;
  for (index_t j = 0; j < width; ++j) {
    norms.push_back(std::sqrt(std::abs(gram(j, j))));
    size += norms.back() > 0 ? 1 : 0;
    if (norms.back() == 0) norms.back() = 1;
  }
  for (index_t i = 0; i < width; ++i) {
    for (index_t j = i; j < width; ++j) {
      S difference = gram(i, j);
      for (index_t k = 0; k <= std::min(i, r.rows - 1); ++k)
        difference -= product(conjugate(S(r(k, i))), S(r(k, j)));
      const double entry = std::abs(difference) / norms[i] / norms[j];
      squares += (i == j ? 1 : 2) * entry * entry;
    }
  }
  return squares == 0 ? 0 : std::sqrt(squares) / std::max(size, 1.0);
}

#define QRTOOL_FOR(T)        \
  template class GramSum<T>; \
  template double state_error(MatrixView<const T>, MatrixView<const Wide<T>>);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
