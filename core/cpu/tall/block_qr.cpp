// SPDX-License-Identifier: Apache-2.0
// block_qr.cpp: factors narrow blocks in packs with BatchedQr, wide ones one by one with EigenQr,
// or with BlockedQr where they are complex.
#include "core/cpu/tall/block_qr.hpp"

#include <algorithm>

#include "core/cpu/tall/product_kernel.hpp"

namespace qrtool {
namespace {

/// Whether blocks are factored by BatchedQr.
template <class T>
bool takes_packs(const Problem& p) {
  return is_complex_number<T> ? complex_takes_packs(p.m, p.n) : TallShape::is_narrow(p.n);
}

/// A view of `count` blocks, each of `rows` rows; q may be empty.
template <class T>
BatchView<T> blocks_of(MatrixView<T> a, index_t count, index_t rows) {
  return {a.data, count, rows, a.cols, a.ld, rows * a.ld};
}

Problem block_problem(index_t rows, index_t n, ElementType type, bool wants_q) {
  return {.count = 1,
          .m = rows,
          .n = n,
          .type = type,
          .mode = wants_q ? Mode::reduced : Mode::r,
          .sign = Sign::lapack};
}

}  // namespace

template <class T>
BlockQr<T>::Kind::Kind(const Problem& p) : problem(p) {
  if (takes_packs<T>(p)) {
    packs.emplace(p);
  } else {
    single.emplace(p);
  }
}

template <class T>
BlockQr<T>::BlockQr(index_t n, index_t block_rows, bool wants_q)
    : n_(n), block_rows_(block_rows), wants_q_(wants_q), whole_(problem_of(block_rows)) {}

template <class T>
Problem BlockQr<T>::problem_of(index_t rows) const {
  return block_problem(rows, n_, element_type<T>, wants_q_);
}

template <class T>
std::size_t BlockQr<T>::workspace_bytes(index_t n, index_t block_rows, bool wants_q) {
  const Problem p = block_problem(block_rows, n, element_type<T>, wants_q);
  const std::size_t bytes = takes_packs<T>(p)      ? batched_qr_workspace_bytes(p)
                            : is_complex_number<T> ? blocked_qr_workspace_bytes(p)
                                                   : eigen_qr_workspace_bytes(p);
  return 2 * bytes;  // a shorter last block needs a second workspace
}

template <class T>
bool BlockQr<T>::factor_blocks(Kind& kind, BatchView<const T> a, BatchView<T> r, BatchView<T> q) {
  bool fits = true;
  if (kind.single) {
    for (index_t b = 0; b < a.count; ++b) {
      const MatrixFactors<T> out{wants_q_ ? q[b] : MatrixView<T>{}, r[b], {}, {}};
      if constexpr (is_complex_number<T>) {
        const batched::Outcome outcome = kind.single->factor(a[b], out);
        fits = fits && outcome.is_finite && outcome.r_fits;
      } else {
        fits = kind.single->factor(a[b], out) && fits;
      }
    }
    return fits;
  }
  const index_t at_once = kind.packs->matrices_at_once();
  outcomes_.resize(static_cast<std::size_t>(at_once));
  for (index_t b = 0; b < a.count; b += at_once) {
    const index_t count = std::min(at_once, a.count - b);
    const BatchView<T> q_pack = wants_q_ ? q.slice(b, count) : BatchView<T>{};
    kind.packs->factor(a.slice(b, count), {q_pack, r.slice(b, count), {}, {}}, outcomes_);
    for (index_t i = 0; i < count; ++i)
      fits = fits && outcomes_[i].is_finite && outcomes_[i].r_fits;
  }
  return fits;
}

template <class T>
bool BlockQr<T>::factor(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> q) {
  const index_t blocks = a.rows / block_rows_, rest = a.rows % block_rows_;
  const BatchView<T> no_batch{};
  bool fits = factor_blocks(whole_, blocks_of(a, blocks, block_rows_), blocks_of(r, blocks, n_),
                            wants_q_ ? blocks_of(q, blocks, block_rows_) : no_batch);
  if (rest == 0) return fits;
  if (!rest_ || rest_->problem.m != rest) rest_.emplace(problem_of(rest));
  const index_t first = blocks * block_rows_, p = std::min(rest, n_);
  MatrixView<T> last_q{};
  if (wants_q_) last_q = {q.data + first * q.ld, rest, p, q.ld};
  return factor_blocks(*rest_, blocks_of(a.row_block(first, rest), 1, rest),
                       blocks_of(r.row_block(blocks * n_, p), 1, p), blocks_of(last_q, 1, rest)) &&
         fits;
}

template <class T>
RowProduct<T>::RowProduct(index_t n)
    : n_(n),
      z_(allocate_host(product_z_bytes<Real<T>>(parts_of<T> * n, parts_of<T> * n))),
      rows_(allocate_host(product_rows_bytes<Real<T>>(parts_of<T> * n))) {
  if (is_complex_number<T>) embedded_ = Batch<Real<T>>(1, 2 * n, 2 * n);
}

template <class T>
std::size_t RowProduct<T>::workspace_bytes(index_t n) {
  const index_t reals = parts_of<T> * n, embedded = is_complex_number<T> ? reals * reals : 0;
  return product_z_bytes<Real<T>>(reals, reals) + product_rows_bytes<Real<T>>(reals) +
         static_cast<std::size_t>(embedded) * sizeof(Real<T>);
}

/// The matrix by which rows of real numbers, or of parts, are multiplied.
template <class T>
MatrixView<const Real<T>> RowProduct<T>::in_real_numbers(MatrixView<const T> z) const {
  if constexpr (is_complex_number<T>) {
    MatrixView<Real<T>> real = embedded_.view()[0].row_block(0, 2 * z.rows);
    real.cols = 2 * z.cols;
    embed(z, real);
    return real;
  } else {
    return z;
  }
}

template <class T>
void RowProduct<T>::multiply(MatrixView<T> q, MatrixView<const T> z) {
  multiply_rows<Real<T>>(interleaved(q), in_real_numbers(z), reinterpret_cast<Real<T>*>(z_.get()),
                         reinterpret_cast<Real<T>*>(rows_.get()));
}

template <class T>
void RowProduct<T>::multiply_blocks(MatrixView<T> q, index_t block_rows, MatrixView<const T> z) {
  for (index_t first = 0, at = 0; first < q.rows; first += block_rows) {
    const index_t rows = std::min(block_rows, q.rows - first), p = std::min(rows, n_);
    multiply(q.row_block(first, rows), z.row_block(at, p));
    at += p;
  }
}

#define QRTOOL_FOR(T)        \
  template class BlockQr<T>; \
  template class RowProduct<T>;
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
