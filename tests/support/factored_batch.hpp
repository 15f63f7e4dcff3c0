// SPDX-License-Identifier: Apache-2.0
// factored_batch.hpp: the factors of a batch, and whether factors are the same bit by bit.
#pragma once

#include <cstring>
#include <vector>

#include "core/backend/backend.hpp"

namespace qrtool::test {

template <class T>
bool same_bits(MatrixView<const T> x, MatrixView<const T> y) {
  if (x.cols == 0) return y.cols == 0;  // there is no element to compare
  for (index_t i = 0; i < x.rows; ++i) {
    const auto bytes = static_cast<std::size_t>(x.cols) * sizeof(T);
    if (std::memcmp(x.data + i * x.ld, y.data + i * y.ld, bytes) != 0) return false;
  }
  return true;
}

/// Whether matrix b of x and matrix c of y have the same factors.
template <class T>
bool same_factors(const Factors<T>& x, index_t b, const Factors<T>& y, index_t c) {
  return same_bits<T>(x.q[b], y.q[c]) && same_bits<T>(x.r[b], y.r[c]) &&
         same_bits<T>(x.v[b], y.v[c]) && same_bits<T>(x.tau[b], y.tau[c]);
}

/// The factors of a batch.
template <class T>
struct FactoredBatch {
  explicit FactoredBatch(const Problem& p)
      : q(p.count, p.m, p.q_cols()),
        r(p.count, p.mode == Mode::raw ? 0 : p.r_rows(), p.n),
        v(p.count, p.mode == Mode::raw ? p.m : 0, p.n),
        tau(p.count, p.mode == Mode::raw ? 1 : 0, p.k()),
        report(static_cast<std::size_t>(p.count)) {}

  Factors<T> factors() const {
    const auto used = [](const Batch<T>& batch) {
      return batch.view().rows * batch.view().cols > 0 ? batch.view() : BatchView<T>{};
    };
    return {used(q), used(r), used(v), used(tau)};
  }
  /// R, or V\R.
  MatrixView<T> r_of(index_t b) const { return (v.view().rows > 0 ? v : r).view()[b]; }

  Batch<T> q, r, v, tau;
  std::vector<MatrixReport> report;
};

template <class T>
bool same_factors(const FactoredBatch<T>& x, index_t b, const FactoredBatch<T>& y, index_t c) {
  return same_factors(x.factors(), b, y.factors(), c);
}

}  // namespace qrtool::test
