// SPDX-License-Identifier: Apache-2.0
// householder.cpp: one reflector after another, applied entry by entry.
#include "tests/support/householder.hpp"

#include <algorithm>
#include <cmath>

namespace qrtool::test {
namespace {

using Real = long double;
using Dense = std::vector<std::vector<Real>>;

/// x := (I - tau v v') x for the columns from `first` on; v starts at row `top`.
void reflect(Dense& x, const std::vector<Real>& v, Real tau, std::size_t top, std::size_t first) {
  for (std::size_t j = first; j < x.front().size(); ++j) {
    Real dot = 0;
    for (std::size_t i = 0; i < v.size(); ++i) dot += v[i] * x[top + i][j];
    for (std::size_t i = 0; i < v.size(); ++i) x[top + i][j] -= tau * v[i] * dot;
  }
}

}  // namespace

template <class T>
ReferenceQr reference_qr(MatrixView<const T> a) {
  const auto m = static_cast<std::size_t>(a.rows), n = static_cast<std::size_t>(a.cols);
  const std::size_t k = std::min(m, n);
  Dense r(m, std::vector<Real>(n)), q(m, std::vector<Real>(m, 0));
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) r[i][j] = a(i, j);
    q[i][i] = 1;
  }
  std::vector<std::vector<Real>> reflectors(k);
  std::vector<Real> tau(k, 0);
  for (std::size_t j = 0; j < k; ++j) {
    std::vector<Real>& v = reflectors[j];
    Real tail = 0;
    for (std::size_t i = j; i < m; ++i) {
      v.push_back(r[i][j]);
      if (i > j) tail += r[i][j] * r[i][j];
    }
    if (tail == 0) continue;
    const Real norm = std::sqrt(v[0] * v[0] + tail), beta = v[0] >= 0 ? -norm : norm;
    tau[j] = (beta - v[0]) / beta;
    for (std::size_t i = 1; i < v.size(); ++i) v[i] /= v[0] - beta;
    v[0] = 1;
    reflect(r, v, tau[j], j, j);
    for (std::size_t i = j + 1; i < m; ++i) r[i][j] = 0;
  }
  for (std::size_t j = k; j-- > 0;) {
    if (tau[j] != 0) reflect(q, reflectors[j], tau[j], j, 0);
  }
  ReferenceQr result{a.rows, a.cols, {}, {}, {}};
  for (const auto& row : q) result.q.insert(result.q.end(), row.begin(), row.end());
  for (const auto& row : r) result.r.insert(result.r.end(), row.begin(), row.end());
  result.tau.assign(tau.begin(), tau.end());
  return result;
}

template ReferenceQr reference_qr(MatrixView<const float>);
template ReferenceQr reference_qr(MatrixView<const double>);

}  // namespace qrtool::test
