// SPDX-License-Identifier: Apache-2.0
// eigen_qr.cpp: loads, scales and stores matrices for core/eigen/householder.hpp.
#include "core/eigen/eigen_qr.hpp"

#include <cmath>
#include <vector>

#include "core/eigen/householder.hpp"

namespace qrtool {

template void householder::factor<float>(Matrix<float>&, Vector<float>&);
template void householder::factor<double>(Matrix<double>&, Vector<double>&);
template void householder::form_q<double>(const Matrix<double>&, const Vector<double>&,
                                          Matrix<double>&);
template void householder::form_q_carefully<float>(const Matrix<float>&, const Vector<float>&,
                                                   Matrix<float>&);
template void householder::form_q_carefully<double>(const Matrix<double>&, const Vector<double>&,
                                                    Matrix<double>&);
template void householder::apply<double>(const Matrix<double>&, const Vector<double>&, bool,
                                         Matrix<double>&);

/// With fewer rows the rounding errors of float32 can exceed the bar of m 2^-23.
constexpr index_t few_rows = 16;

/// Without rows or columns the only result is a complete Q, which is I. Nothing is allocated for
/// the other dimension, since a file may claim any number of rows or columns.
bool is_nothing(const Problem& problem) { return problem.k() == 0 && problem.q_cols() == 0; }

bool computes_in_float64(const Problem& problem) {
  return problem.type != ElementType::float32 || problem.m < few_rows;
}

std::size_t eigen_qr_workspace_bytes(const Problem& problem) {
  if (is_nothing(problem)) return 0;
  const std::size_t element =
      (computes_in_float64(problem) ? 8 : 4) * static_cast<std::size_t>(parts_in(problem.type));
  const auto m = static_cast<std::size_t>(problem.m);
  return element * m * static_cast<std::size_t>(problem.n + problem.q_cols() + 4);
}

template <class T>
class EigenQr<T>::Worker {
 public:
  virtual ~Worker() = default;
  virtual bool factor(MatrixView<const T> a, const MatrixFactors<T>& out) = 0;
};

namespace {

/// Computes x 2^exponent, rounded once.
template <class R>
class PowerOfTwo {
 public:
  explicit PowerOfTwo(int exponent = 0) : exponent_(exponent), factor_(std::ldexp(R(1), exponent)) {
    is_normal_ = std::isnormal(factor_);
  }
  R operator()(R x) const { return is_normal_ ? x * factor_ : std::ldexp(x, exponent_); }
  std::complex<R> operator()(std::complex<R> x) const {
    return {(*this)(x.real()), (*this)(x.imag())};
  }

 private:
  int exponent_;
  bool is_normal_;
  R factor_;
};

/// Returns the larger of |re x| and |im x|.
template <class T>
Real<T> largest_part(T x) {
  if constexpr (is_complex_number<T>)
    return std::max(std::abs(x.real()), std::abs(x.imag()));
  else
    return std::abs(x);
}

/// Calls f(i, j) for every entry, in tiles of rows, so that both row-major and column-major
/// matrices use whole cache lines.
template <class F>
void by_tiles(index_t rows, index_t cols, F f) {
  constexpr index_t tile = 16;
  for (index_t first = 0; first < rows; first += tile) {
    const index_t last = std::min(first + tile, rows);
    for (index_t j = 0; j < cols; ++j) {
      for (index_t i = first; i < last; ++i) f(i, j);
    }
  }
}

/// Matrices are stored in T, and computed in C; both are real, or both are complex.
template <class T, class C>
class TypedWorker : public EigenQr<T>::Worker {
  using R = Real<C>;

 public:
  explicit TypedWorker(const Problem& problem)
      : problem_(problem),
        vr_(problem.m, problem.n),
        q_(problem.m, problem.q_cols()),
        signs_(problem.k()),
        down_(static_cast<std::size_t>(problem.n)),
        up_(down_.size()) {}

  bool factor(MatrixView<const T> a, const MatrixFactors<T>& out) override {
    load(a);
    householder::factor<C>(vr_, tau_);
    choose_signs();
    if (problem_.mode == Mode::raw) {
      store_reflectors(out.v, out.tau);
      return store_upper(out.v);
    }
    if (problem_.wants_q()) {
      householder::form_q_carefully<C>(vr_, tau_, q_);
      store_q(out.q);
    }
    clear_lower(out.r);
    return store_upper(out.r);
  }

 private:
  /// A := A D with D = diag(2^-e_j).
  void load(MatrixView<const T> a) {
    largest_.assign(down_.size(), 0);
    for (index_t i = 0; i < a.rows; ++i) {
      for (index_t j = 0; j < a.cols; ++j)
        largest_[j] = std::max(largest_[j], largest_part(a(i, j)));
    }
    for (index_t j = 0; j < a.cols; ++j) {
      int exponent = 0;
      std::frexp(largest_[j], &exponent);
      down_[j] = PowerOfTwo<R>(-exponent);
      up_[j] = PowerOfTwo<R>(exponent);
    }
    by_tiles(a.rows, a.cols,
             [&](index_t i, index_t j) { vr_(i, j) = down_[j](static_cast<C>(a(i, j))); });
  }

  void choose_signs() {
    for (index_t i = 0; i < problem_.k(); ++i) {
      signs_(i) =
          problem_.sign == Sign::positive && problem_.mode != Mode::raw && real_part(vr_(i, i)) < 0
              ? R(-1)
              : R(1);
    }
  }

  void store_q(MatrixView<T> q) const {
    by_tiles(q.rows, q.cols, [&](index_t i, index_t j) {
      q(i, j) = static_cast<T>(j < problem_.k() ? signs_(j) * q_(i, j) : q_(i, j));
    });
  }

  static void clear_lower(MatrixView<T> r) {
    for (index_t i = 1; i < r.rows; ++i) {
      std::fill_n(r.data + i * r.ld, std::min(i, r.cols), T(0));
    }
  }

  /// R := R D^-1 on and above the diagonal.
  bool store_upper(MatrixView<T> r) const {
    bool finite = true;
    by_tiles(problem_.k(), problem_.n, [&](index_t i, index_t j) {
      if (j < i) return;
      // Adding 0 turns -0 into +0.
      r(i, j) = static_cast<T>(up_[j](signs_(i) * vr_(i, j))) + T(0);
      finite = finite && is_finite(r(i, j));
    });
    return finite;
  }

  /// Stores V below the diagonal, and tau. If V was rounded, tau is computed from the rounded V (2
  /// / v'v if it is real), so that I - tau v v^H is orthogonal to the last bit of T.
  void store_reflectors(MatrixView<T> v, MatrixView<T> tau) const {
    for (index_t j = 0; j < problem_.n; ++j) {
      R vv = 1;
      for (index_t i = j + 1; i < problem_.m; ++i) {
        v(i, j) = static_cast<T>(vr_(i, j));
        vv += square_of(static_cast<C>(v(i, j)));
      }
      if (j >= problem_.k()) continue;
      const bool was_rounded = sizeof(T) < sizeof(C) && tau_(j) != C(0);
      tau(0, j) = static_cast<T>(was_rounded ? tau_of_rounded(tau_(j), vv) : tau_(j));
    }
  }

  /// Returns the tau in the direction of `tau` with 2 Re tau = |tau|^2 vv.
  static C tau_of_rounded(C tau, R vv) {
    if constexpr (is_complex_number<C>)
      return tau * (2 * tau.real() / (std::norm(tau) * vv));
    else
      return C(2) / vv;
  }

  Problem problem_;
  householder::Matrix<C> vr_, q_;
  householder::Vector<C> tau_;
  householder::Vector<R> signs_;
  std::vector<PowerOfTwo<R>> down_, up_;  // 2^-e_j, 2^e_j
  std::vector<Real<T>> largest_;          // the largest part of each column's entries
};

}  // namespace

template <class T>
EigenQr<T>::EigenQr(const Problem& problem) {
  if (is_nothing(problem)) return;
  if constexpr (is_complex_number<T>) {
    worker_ = std::make_unique<TypedWorker<T, householder::Complex128>>(problem);
  } else if (computes_in_float64(problem)) {
    worker_ = std::make_unique<TypedWorker<T, double>>(problem);
  } else {
    worker_ = std::make_unique<TypedWorker<T, T>>(problem);
  }
}

template <class T>
EigenQr<T>::~EigenQr() = default;
template <class T>
EigenQr<T>::EigenQr(EigenQr&&) noexcept = default;

template <class T>
bool EigenQr<T>::factor(MatrixView<const T> a, const MatrixFactors<T>& out) {
  return worker_ == nullptr || worker_->factor(a, out);
}

template class EigenQr<float>;
template class EigenQr<double>;
template class EigenQr<std::complex<float>>;
template class EigenQr<std::complex<double>>;

}  // namespace qrtool
