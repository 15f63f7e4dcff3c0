// SPDX-License-Identifier: Apache-2.0
// complex_errors.hpp: the errors of complex factors by plain loops in long double, as a user of
// NumPy would compute them. It shares no code with the program.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "core/batch.hpp"

namespace qrtool::test {

using Wide = std::complex<long double>;

/// A dense complex matrix, row-major.
struct WideMatrix {
  index_t rows = 0, cols = 0;
  std::vector<Wide> data;

  WideMatrix(index_t m, index_t n)
      : rows(m), cols(n), data(static_cast<std::size_t>(m * n), Wide(0)) {}
  template <class T>
  explicit WideMatrix(MatrixView<T> a) : WideMatrix(a.rows, a.cols) {
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < cols; ++j) (*this)(i, j) = {a(i, j).real(), a(i, j).imag()};
  }
  Wide& operator()(index_t i, index_t j) { return data[static_cast<std::size_t>(i * cols + j)]; }
  const Wide& operator()(index_t i, index_t j) const {
    return data[static_cast<std::size_t>(i * cols + j)];
  }
};

inline WideMatrix product(const WideMatrix& a, const WideMatrix& b) {
  WideMatrix c(a.rows, b.cols);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t p = 0; p < a.cols; ++p)
      for (index_t j = 0; j < b.cols; ++j) {
        // The operator * looks for infinities, and takes ten times as long.
        const Wide x = a(i, p), y = b(p, j);
        c(i, j) += Wide(x.real() * y.real() - x.imag() * y.imag(),
                        x.real() * y.imag() + x.imag() * y.real());
      }
  return c;
}

inline WideMatrix adjoint(const WideMatrix& a) {
  WideMatrix t(a.cols, a.rows);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) t(j, i) = std::conj(a(i, j));
  return t;
}

inline double norm(const WideMatrix& a) {
  long double sum = 0;
  for (const Wide& x : a.data) sum += std::norm(x);
  return static_cast<double>(std::sqrt(sum));
}

inline WideMatrix difference(WideMatrix a, const WideMatrix& b) {
  for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] -= b.data[i];
  return a;
}

struct PlainErrors {
  double residual = 0, orthogonality = 0, lower = 0, diagonal_ratio = 0, norm_a = 0;
};

/// ||A - QR|| / ||A||, ||I - Q^H Q||, ||below R's diagonal|| / ||A||, min |r_ii| / max |r_ii|.
inline PlainErrors plain_errors(const WideMatrix& a, const WideMatrix& q, const WideMatrix& r) {
  PlainErrors errors{.norm_a = norm(a)};
  const auto relative = [&](double x) { return errors.norm_a > 0 ? x / errors.norm_a : x; };
  errors.residual = relative(norm(difference(a, product(q, r))));
  WideMatrix identity(q.cols, q.cols);
  for (index_t i = 0; i < q.cols; ++i) identity(i, i) = 1;
  errors.orthogonality = norm(difference(identity, product(adjoint(q), q)));
  WideMatrix below = r;
  double least = INFINITY, largest = 0;
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t j = i; j < r.cols; ++j) below(i, j) = 0;
    if (i >= std::min(a.rows, a.cols)) continue;
    least = std::min(least, static_cast<double>(std::abs(r(i, i))));
    largest = std::max(largest, static_cast<double>(std::abs(r(i, i))));
  }
  errors.lower = relative(norm(below));
  errors.diagonal_ratio = largest > 0 ? least / largest : 0;
  return errors;
}

/// Q (m x q_cols) = H_1 .. H_k with H = I - tau v v^H, v(0) = 1 and the rest below V's diagonal.
inline WideMatrix q_of_reflectors(const WideMatrix& v, const WideMatrix& tau, index_t q_cols) {
  WideMatrix q(v.rows, q_cols);
  for (index_t i = 0; i < q_cols; ++i) q(i, i) = 1;
  for (index_t k = tau.cols - 1; k >= 0; --k) {
    const auto entry = [&](index_t i) { return i == k ? Wide(1) : v(i, k); };
    for (index_t j = 0; j < q_cols; ++j) {
      Wide sum = 0;
      for (index_t i = k; i < v.rows; ++i) sum += std::conj(entry(i)) * q(i, j);
      for (index_t i = k; i < v.rows; ++i) q(i, j) -= tau(0, k) * entry(i) * sum;
    }
  }
  return q;
}

}  // namespace qrtool::test
