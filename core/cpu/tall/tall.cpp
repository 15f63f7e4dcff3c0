// SPDX-License-Identifier: Apache-2.0
// tall.cpp: goes up the tree of R factors to form R, and down the tree to form the Z_i.
#include "core/cpu/tall/tall.hpp"

#include <cmath>

#include "core/cpu/tall/block_qr.hpp"
#include "core/matrix/complex_arithmetic.hpp"

namespace qrtool {
namespace {

/// Returns the number of rows of every stack of R factors, from the stack of the leaves to the one
/// with a single R.
std::vector<index_t> level_rows(const TallShape& shape) {
  std::vector<index_t> rows{shape.stacked_rows()};
  index_t nodes = shape.leaves();
  while (nodes > 1) {
    rows.push_back(shape.stacked_rows(rows.back(), shape.node_rows()));
    nodes = (nodes + shape.fan_in() - 1) / shape.fan_in();
  }
  return rows;
}

template <class T>
void set_identity(MatrixView<T> z) {
  for (index_t i = 0; i < z.rows; ++i) {
    for (index_t j = 0; j < z.cols; ++j) z(i, j) = i == j ? T(1) : T(0);
  }
}

}  // namespace

template <class T>
std::size_t TallTree<T>::bytes(const TallShape& shape) {
  std::size_t rows = 0;
  for (const index_t level : level_rows(shape)) rows += static_cast<std::size_t>(level);
  return rows * static_cast<std::size_t>(shape.n()) * sizeof(T);
}

template <class T>
TallTree<T>::TallTree(const TallShape& shape, const AllocateHost& allocate)
    : shape_(shape), memory_(allocate(bytes(shape))) {
  auto* next = reinterpret_cast<T*>(memory_.get());
  for (const index_t rows : level_rows(shape)) {
    levels_.push_back({next, rows, shape.n(), shape.n()});
    next += rows * shape.n();
  }
}

template <class T>
MatrixView<T> TallTree<T>::nodes(index_t first, index_t count) const {
  // All leaves except the last have n rows.
  const MatrixView<T>& all = levels_.front();
  const index_t row = first * shape_.n();
  return all.row_block(row, std::min(count * shape_.n(), all.rows - row));
}

template <class T>
bool TallTree<T>::combine(bool wants_z, MatrixView<T> r) {
  BlockQr<T> qr(shape_.n(), shape_.node_rows(), wants_z);
  bool fits = true;
  for (std::size_t l = 0; l + 1 < levels_.size(); ++l) {
    fits = qr.factor(levels_[l], levels_[l + 1], wants_z ? levels_[l] : MatrixView<T>{}) && fits;
  }
  const MatrixView<T>& top = levels_.back();
  for (index_t i = 0; i < r.rows; ++i) std::copy_n(&top(i, 0), r.cols, &r(i, 0));
  if (!wants_z) return fits;
  set_identity<T>({top.data, top.rows, shape_.k(), top.ld});
  RowProduct<T> product(shape_.n());
  for (std::size_t l = levels_.size() - 1; l-- > 0;) {
    product.multiply_blocks(levels_[l], shape_.node_rows(), levels_[l + 1]);
  }
  return fits;
}

template <class T>
void TallTree<T>::apply_signs(const std::vector<int>& signs, MatrixView<T> r) const {
  for (index_t i = 0; i < r.rows; ++i) {
    // + 0 turns -0 into +0
    for (index_t j = 0; j < r.cols; ++j) r(i, j) = r(i, j) * static_cast<Real<T>>(signs[i]) + T(0);
  }
  const MatrixView<T>& z = levels_.front();
  for (index_t i = 0; i < z.rows; ++i) {
    for (index_t j = 0; j < shape_.k(); ++j) z(i, j) *= static_cast<Real<T>>(signs[j]);
  }
}

template <class T>
std::vector<int> positive_signs(MatrixView<const T> r, index_t k) {
  std::vector<int> signs;
  for (index_t i = 0; i < k; ++i) signs.push_back(real_part(r(i, i)) < 0 ? -1 : 1);
  return signs;
}

template <class T>
std::vector<int> lapack_signs(MatrixView<const T> q_top, bool is_all) {
  const index_t k = q_top.cols;
  using S = Wide<T>;
  Batch<S> copy(1, k, k);
  const MatrixView<S> x = copy.view()[0];
  for (index_t i = 0; i < k; ++i) {
    for (index_t j = 0; j < k; ++j) x(i, j) = static_cast<S>(q_top(i, j));
  }
  std::vector<int> signs;
  for (index_t j = 0; j < k; ++j) {
    // A real number and zeros below it: the reflector is I and keeps the sign.
    const bool is_kept =
        std::abs(real_part(x(j, j))) >= 1 || (is_all && j == k - 1 && imaginary_part(x(j, j)) == 0);
    const double s = (real_part(x(j, j)) < 0) == is_kept ? -1 : 1;
    signs.push_back(static_cast<int>(s));
    if (is_kept) continue;
    // The pivot is x(j, j) - s, where s is the sign of Q's column; it is at least 1 in size.
    x(j, j) -= s;
    for (index_t i = j + 1; i < k; ++i) {
      const S l = x(i, j) / x(j, j);
      for (index_t c = j + 1; c < k; ++c) x(i, c) -= product(l, x(j, c));
    }
  }
  return signs;
}

template <class T>
bool finish_r(TallTree<T>& tree, Sign sign, bool wants_z, LeafQr<T>& leaves,
              MatrixView<const T> top, MatrixView<T> r) {
  const bool is_lapack = sign == Sign::lapack;
  if (!tree.combine(wants_z || is_lapack, r)) return false;
  std::vector<int> signs;
  if (is_lapack) {
    const index_t k = tree.shape().k();
    const Batch<T> q(1, top.rows, k);
    MatrixView<T> z = tree.nodes(0, 1);
    z.cols = k;
    leaves.form_q(top, z, q.view()[0]);
    signs = lapack_signs<T>(q.view()[0].row_block(0, k));
  } else {
    signs = positive_signs<T>(r, tree.shape().k());
  }
  tree.apply_signs(signs, r);
  return true;
}

#define QRTOOL_FOR(T)                                                     \
  template class TallTree<T>;                                             \
  template std::vector<int> positive_signs(MatrixView<const T>, index_t); \
  template std::vector<int> lapack_signs(MatrixView<const T>, bool);      \
  template bool finish_r(TallTree<T>&, Sign, bool, LeafQr<T>&, MatrixView<const T>, MatrixView<T>);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
