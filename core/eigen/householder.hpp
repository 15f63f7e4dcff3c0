// SPDX-License-Identifier: Apache-2.0
// householder.hpp: factors one column-major matrix in place by Householder reflectors, and forms Q
// from them, with Eigen (LAPACK geqrf, orgqr, and for complex matrices ungqr). Private to core.
//
// H = I - tau v v^H with v(0) = 1. H^H turns a column x into beta e_1 with a real beta, and Q is
// H_1 H_2 .. H_k. tau is complex where x(0) is: (beta - x(0)) / beta.
#pragma once

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/batch.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/report/ratios.hpp"

namespace qrtool::householder {

template <class C>
using Matrix = Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic>;
template <class C>
using Vector = Eigen::Matrix<C, Eigen::Dynamic, 1>;

/// The number of columns of a block of reflectors that form_q applies together. If reflectors are
/// nearly parallel, a wider block loses digits.
inline constexpr index_t block_columns = 8;
/// The next type with more digits than C. long double has them on x86-64 and on 64-bit Arm.
template <class C>
using WiderType = std::conditional_t<
    std::is_same_v<C, float>, double,
    std::conditional_t<is_complex_number<C>, std::complex<long double>, long double>>;

/// The number of rows in a plain sum, before a compensated sum is used.
inline constexpr index_t sum_rows = 256;

/// The error of a sum of m terms can be m u, and the bar is 30 k u. If m is larger than this, sums
/// are taken block by block.
inline bool is_tall(index_t m, index_t k) { return m > 32 * k; }

/// w := C^H v, in blocks of rows, with a compensated sum over the blocks.
template <class C>
Vector<C> tall_product(const Eigen::Ref<const Matrix<C>>& c, const Eigen::Ref<const Vector<C>>& v) {
  Vector<C> sum = Vector<C>::Zero(c.cols()), compensation = sum, next;
  for (index_t i = 0; i < v.size(); i += sum_rows) {
    const index_t rows = std::min<index_t>(sum_rows, v.size() - i);
    const Vector<C> term = c.middleRows(i, rows).adjoint() * v.segment(i, rows) - compensation;
    next = sum + term;
    compensation = (next - sum) - term;
    sum = next;
  }
  return sum;
}

/// C := (I - tau v v^H) C.
template <class C>
void apply_reflector(Eigen::Ref<Matrix<C>> c, const Eigen::Ref<const Vector<C>>& v, C tau) {
  if (tau == C(0) || c.cols() == 0) return;
  const Vector<C> w = tall_product<C>(c, v);
  c.noalias() -= (tau * v) * w.adjoint();
}

/// Computes the reflector that turns x into beta e_1, with v(1:) in `essential` (LAPACK larfg).
/// beta is real even if tau is 0.
template <class C>
struct Reflector {
  C beta, tau;
};
template <class C>
Reflector<C> make_reflector(const Vector<C>& x, Eigen::Ref<Vector<C>> essential) {
  // Squares of tiny entries would lose digits to underflow, so x is multiplied by a power of two
  // first.
  using Limits = std::numeric_limits<Real<C>>;
  const Real<C> largest = x.cwiseAbs().maxCoeff();
  int exponent = 0;
  if (largest * largest < std::sqrt(Limits::min())) std::frexp(largest, &exponent);
  const Real<C> raise = std::ldexp(Real<C>(1), std::min(-exponent, Limits::max_exponent - 1));
  const C alpha = raise * x(0);
  const Vector<C> tail = raise * x.tail(x.size() - 1);
  const Real<C> tail_squared = real_part(tall_product<C>(tail, tail)(0));
  if (!(tail_squared > 0) && imaginary_part(alpha) == 0) {
    essential.setZero();
    return {x(0), C(0)};
  }
  const Real<C> norm = std::hypot(std::abs(alpha), std::sqrt(tail_squared));
  const Real<C> beta = real_part(alpha) >= 0 ? -norm : norm;
  essential = tail / (alpha - beta);
  return {beta / raise, (beta - alpha) / beta};
}

/// Returns tau for the stored v, whose essential part has the sum of squares `sum`, near a computed
/// tau: in its direction, with 2 Re tau = |tau|^2 v^H v, for which H is unitary. A real tau is 2 /
/// v'v.
template <class C>
C tau_of_v(C tau, double sum) {
  const double along = 1 + (1 - sum) / (1 + sum);  // 2 / v^H v
  if constexpr (is_complex_number<C>) {
    const double re = static_cast<double>(tau.real()), im = static_cast<double>(tau.imag());
    const double factor = along * (re / (re * re + im * im));
    return C(std::complex<double>(factor * re, factor * im));
  } else {
    return static_cast<C>(along);
  }
}

/// Replaces tau_j by tau_of_v() unless H_j is I: Q is only as orthogonal as the reflectors are.
/// Without it the largest error of five million matrices of few rows was 0.995 of the bar.
template <class C>
void set_tau_from_v(const Matrix<C>& vr, Vector<C>& tau) {
  for (index_t j = 0; j < tau.size(); ++j) {
    if (tau(j) == C(0)) continue;
    double sum = 0, lost = 0;  // Kahan's sum
    for (index_t i = j + 1; i < vr.rows(); ++i) {
      const auto v = static_cast<double>(real_part(vr(i, j)));
      double term = v * v;
      if constexpr (is_complex_number<C>) {
        const auto w = static_cast<double>(imaginary_part(vr(i, j)));
        term += w * w;
      }
      const double corrected = term - lost, next = sum + corrected;
      lost = (next - sum) - corrected;
      sum = next;
    }
    tau(j) = tau_of_v(tau(j), sum);
  }
}

/// A (m x n) := V\R; tau has k entries. The columns of A are scaled: entries are at most 1 in size.
template <class C>
void factor(Matrix<C>& a, Vector<C>& tau) {
  const index_t m = a.rows(), n = a.cols(), k = std::min(m, n);
  if (k > 0 && !is_tall(m, k)) {
    const Eigen::HouseholderQR<Eigen::Ref<Matrix<C>>> qr(a);
    tau = qr.hCoeffs().conjugate();  // Eigen has that of H^H
    if (m <= rows_near_bar) set_tau_from_v<C>(a, tau);
    return;
  }
  tau.resize(k);
  Vector<C> v;
  for (index_t j = 0; j < k; ++j) {
    v = a.col(j).tail(m - j);
    const Reflector<C> reflector = make_reflector<C>(v, a.col(j).tail(m - j - 1));
    a(j, j) = reflector.beta;
    tau(j) = reflector.tau;
    v(0) = C(1);
    v.tail(m - j - 1) = a.col(j).tail(m - j - 1);
    apply_reflector<C>(a.block(j, j + 1, m - j, n - j - 1), v, conjugate(tau(j)));
  }
}

/// The number of rows in a plain sum of such a block. If rows are alike, all terms of a sum are
/// equal and every addition rounds the same way: with plain sums Q of 200x64 had an error of two
/// bars, as LAPACK's has, although V and tau are good to 0.15.
inline constexpr index_t part_rows = 16;

/// Returns X^H Y, summed over blocks of rows.
template <class C, class X, class Y>
Matrix<C> product_in_parts(const X& x, const Y& y) {
  Matrix<C> sum = Matrix<C>::Zero(x.cols(), y.cols());
  for (index_t i = 0; i < x.rows(); i += part_rows) {
    const index_t rows = std::min(part_rows, x.rows() - i);
    sum.noalias() += x.middleRows(i, rows).adjoint() * y.middleRows(i, rows);
  }
  return sum;
}

/// C := H_1 .. H_c C, where the c columns of `vr` hold V below the diagonal: C - V W, in which row
/// j of W is tau_j (v_j^H C - sum over later i of v_j^H v_i W_i). With `is_adjoint` it is H_c^H ..
/// H_1^H C, with the conjugate of tau_j and a sum over earlier i.
template <class C>
void apply_block(Eigen::Ref<Matrix<C>> c, const Eigen::Ref<const Matrix<C>>& vr,
                 const Eigen::Ref<const Vector<C>>& tau, bool is_adjoint = false) {
  Matrix<C> v = vr;
  v.template triangularView<Eigen::StrictlyUpper>().setZero();
  v.diagonal().setOnes();
  const Matrix<C> gram = product_in_parts<C>(v, v);
  Matrix<C> w = product_in_parts<C>(v, c);
  for (index_t step = 0; step < v.cols(); ++step) {
    const index_t j = is_adjoint ? step : v.cols() - 1 - step;
    if (is_adjoint)
      w.row(j) -= gram.row(j).head(step) * w.topRows(step);
    else
      w.row(j) -= gram.row(j).tail(step) * w.bottomRows(step);
    w.row(j) *= is_adjoint ? conjugate(tau(j)) : tau(j);
  }
  c.noalias() -= v * w;
}

/// Q := H_1 .. H_k Q in the type W, one reflector after another. Q is I.
template <class C, class W>
void apply_one_by_one(const Matrix<C>& vr, const Vector<C>& tau, Matrix<W>& q) {
  const index_t m = vr.rows();
  Vector<W> v;
  for (index_t j = tau.size() - 1; j >= 0; --j) {
    v = vr.col(j).tail(m - j).template cast<W>();
    v(0) = W(1);
    apply_reflector<W>(q.block(j, j, m - j, q.cols() - j), v, W(tau(j)));
  }
}

/// Forms Q (m x q_cols) from V and tau, backward: a reflector that begins at row j changes only
/// Q[j:, j:].
template <class C>
void form_q(const Matrix<C>& vr, const Vector<C>& tau, Matrix<C>& q) {
  const index_t m = vr.rows(), k = tau.size();
  q.setIdentity();
  if (k == 0) return;
  if (is_tall(m, k)) return apply_one_by_one(vr, tau, q);
  for (index_t j = (k - 1) / block_columns * block_columns; j >= 0; j -= block_columns) {
    const index_t columns = std::min(block_columns, k - j);
    apply_block<C>(q.block(j, j, m - j, q.cols() - j), vr.block(j, j, m - j, columns),
                   tau.segment(j, columns));
  }
}

/// C := H_1 .. H_k C, or H_k^H .. H_1^H C.
template <class C>
void apply(const Matrix<C>& vr, const Vector<C>& tau, bool is_adjoint, Matrix<C>& c) {
  const index_t m = vr.rows(), k = tau.size();
  const index_t step = is_tall(m, k) ? 1 : block_columns, blocks = (k + step - 1) / step;
  for (index_t i = 0; i < blocks; ++i) {
    const index_t j = (is_adjoint ? i : blocks - 1 - i) * step, columns = std::min(step, k - j);
    if (!is_tall(m, k)) {
      apply_block<C>(c.bottomRows(m - j), vr.block(j, j, m - j, columns), tau.segment(j, columns),
                     is_adjoint);
      continue;
    }
    Vector<C> v = vr.col(j).tail(m - j);
    v(0) = C(1);
    apply_reflector<C>(c.bottomRows(m - j), v, is_adjoint ? conjugate(tau(j)) : tau(j));
  }
}

/// As form_q(), but Q of few rows is formed in the next wider type, and rounded once. With alike
/// rows products in float64 left 0.97 of the bar with AVX-512, and 1.19 with AVX2, which adds in
/// another order. In the wider type it is 0.43 with both.
template <class C>
void form_q_carefully(const Matrix<C>& vr, const Vector<C>& tau, Matrix<C>& q) {
  if (vr.rows() > rows_near_bar) return form_q(vr, tau, q);
  Matrix<WiderType<C>> wide(q.rows(), q.cols());
  wide.setIdentity();
  apply_one_by_one(vr, tau, wide);
  q = wide.template cast<C>();
}

// Eigen's templates take long to compile: eigen_qr.cpp does it for all real matrices, and
// complex_householder.cpp for complex ones, all of which are factored in complex128.
extern template void factor<float>(Matrix<float>&, Vector<float>&);
extern template void factor<double>(Matrix<double>&, Vector<double>&);
extern template void form_q<double>(const Matrix<double>&, const Vector<double>&, Matrix<double>&);
extern template void form_q_carefully<float>(const Matrix<float>&, const Vector<float>&,
                                             Matrix<float>&);
extern template void form_q_carefully<double>(const Matrix<double>&, const Vector<double>&,
                                              Matrix<double>&);
extern template void apply<double>(const Matrix<double>&, const Vector<double>&, bool,
                                   Matrix<double>&);
using Complex128 = std::complex<double>;
extern template void apply<Complex128>(const Matrix<Complex128>&, const Vector<Complex128>&, bool,
                                       Matrix<Complex128>&);
extern template void factor<Complex128>(Matrix<Complex128>&, Vector<Complex128>&);
extern template void form_q<Complex128>(const Matrix<Complex128>&, const Vector<Complex128>&,
                                        Matrix<Complex128>&);
extern template void form_q_carefully<Complex128>(const Matrix<Complex128>&,
                                                  const Vector<Complex128>&, Matrix<Complex128>&);

}  // namespace qrtool::householder
