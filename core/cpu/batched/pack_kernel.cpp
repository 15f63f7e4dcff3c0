// SPDX-License-Identifier: Apache-2.0
// pack_kernel.cpp: Householder QR of as many real or complex matrices as a SIMD vector has lanes
// (LAPACK geqrf, orgqr, ungqr), compiled once for every instruction set.
//
// A vector holds entry (i, j) of `lanes` matrices. Every step of the textbook algorithm is then a
// vector instruction without a shuffle, for matrices of any size:
//
//     matrices in memory              pack: vectors, four columns side by side
//     a a a   b b b   c c c   ...     [a b c ..] [a b c ..] [a b c ..]
//     a a a   b b b   c c c           [a b c ..] [a b c ..] [a b c ..]
//
// Four columns form a panel, with H_j H_j+1 H_j+2 H_j+3 = I - V T V' (LAPACK larft, compact WY), so
// that each entry to their right is loaded twice and stored once per four reflectors. All panels to
// the left are applied to a panel while it stays in the first-level cache (left-looking): only V is
// read from farther away, and only the panel is written.
//
//     R R|R R|R R|
//     v R|R R|R R|      c: scale_panel, then apply_panel of all v: C := (I - V T' V') C,
//     v v|v R|c c|      then factor_panel
//     v v|v v|c c|
//
// A complex entry is two vectors, its real and its imaginary part. Both parts of a column are
// scaled by the same power of two, and H_j^H makes the diagonal real.
//
// Q is formed backward, panel by panel, and overwrites V: the panel at row j changes only Q[j:, :].
//
// R alone of matrices with many rows comes from A'A in the lanes whose guard accepts it
// (pack_gram.hpp).
//
// Where lanes need different answers (zero columns, tiny columns, NaN) the kernel computes both and
// selects one per lane, so that no matrix depends on another.
#include "core/cpu/batched/pack_kernel.hpp"

#include "core/cpu/batched/columns.hpp"
#include "core/cpu/batched/pack_gram.hpp"

namespace qrtool::batched {
namespace {

/// Matrices are stored in T, and computed in C. Complex entries have two parts.
template <class T, class C, int parts>
class Factorization : Columns<T, C, parts> {
  using Base = Columns<T, C, parts>;
  using Base::at, Base::broadcast, Base::greater, Base::infinity_bits, Base::is_finite_,
      Base::magnitude_bits, Base::panel, Base::panels_of, Base::row_of, Base::row_vectors, Base::t_;
  using typename Base::E, typename Base::Int, typename Base::IntT, typename Base::InMemory,
      typename Base::V, typename Base::VT, typename Base::Workspace;

 public:
  using Base::lanes;

  static std::size_t workspace_bytes(const Shape& shape) {
    Workspace workspace(nullptr);
    const Factorization f(shape, workspace);
    if constexpr (has_gram)
      if (uses_gram(shape)) const Gram gram(shape.m, shape.n, workspace);
    return workspace.bytes();
  }

  static void factor(const Shape& shape, const Pack<T>& pack, std::byte* workspace) {
    Workspace places(workspace);
    Factorization f(shape, places);
    f.clear();
    if constexpr (has_gram) {
      if (uses_gram(shape)) {
        Gram gram(shape.m, shape.n, places);
        f.take_gram(gram, gram.factor(pack.a, pack.count), pack);
        return f.store(pack);
      }
    }
    f.factor_all(pack);
    f.store(pack);
  }

 private:
  using Gram = GramPack<T, C>;
  static constexpr bool has_gram = sizeof(T) == sizeof(C) && parts == 1;

  /// Whether R is computed from A'A, which gives it a positive diagonal. Only if Q is not wanted.
  static bool uses_gram(const Shape& shape) {
    return shape.q_cols == 0 && !shape.is_raw && shape.is_positive && Gram::fits(shape.m, shape.n);
  }

  void factor_all(const Pack<T>& pack) {
    Base::load(pack.a, pack.count, s_.n);
    this->find_scale();
    this->factor_columns();
  }

  /// R of the lanes that the guard accepts, and of all others by reflectors.
  void take_gram(const Gram& gram, Int accepted, const Pack<T>& pack) {
    bool are_all = true;
    for (index_t l = 0; l < pack.count; ++l) are_all &= accepted[l] != 0;
    if (are_all) {
      this->copy_scale(gram);
      r_ = &gram;
      return;
    }
    factor_all(pack);
    if (!any(accepted)) return;
    for (index_t i = 0; i < s_.n; ++i)
      for (index_t j = i; j < s_.n; ++j) {
        V& r = Base::r_at(i, j);
        r = accepted ? gram.r_at(i, j) : r;
      }
  }

  Factorization(const Shape& shape, Workspace& workspace)
      : Base(shape.m, shape.n, shape.k, shape.q_cols, workspace), s_(shape) {
    sign_ = workspace.take(s_.k > s_.q_cols ? s_.k : s_.q_cols);
  }

  // ---- between memory and the pack

  void store(const Pack<T>& pack) {
    if (s_.is_raw) {
      store_reflectors(pack);
    } else {
      choose_signs();
      store_r(pack);
      if (s_.q_cols > 0) {
        form_q();
        store_q(pack);
      }
    }
    store_outcomes(pack);
  }

  void choose_signs() {
    const V one = broadcast(1);
    for (index_t i = 0; i < s_.k; ++i)
      sign_[i] = s_.is_positive ? (r_->r_at(i, parts * i) < 0 ? -one : one) : one;
    for (index_t i = s_.k; i < s_.q_cols; ++i) sign_[i] = one;
  }

  /// x := the parts j, .., j + N - 1 of row i of R D^-1, rounded once; adding 0 turns -0 into +0.
  /// Returns the largest of them as bits. N is at most row_vectors.
  template <int N>
  [[gnu::always_inline]] IntT upper_parts(index_t i, index_t j, V sign, VT* x) const {
    const V *from = &r_->r_at(i, j), *up = r_->scales(j / parts);
    IntT largest{};
#pragma GCC unroll 8
    for (int e = 0; e < N; ++e) {
      const V* const factors = up + 2 * (e / parts);
      x[e] = __builtin_convertvector(from[e] * sign * factors[0] * factors[1], VT) + VT{};
      largest = greater(magnitude_bits(x[e]), largest);
    }
    return largest;
  }

  /// Computes the N parts from (i, j) on as upper_parts() does, but with lower(...) left of the
  /// diagonal.
  template <int N, class Lower>
  [[gnu::always_inline]] void upper_row(index_t i, index_t j, V sign, VT* x, Lower lower) {
    constexpr int step = N < row_vectors ? N : row_vectors;
    IntT largest{};
#pragma GCC unroll 8
    for (int e = 0; e < N; e += step) {
      if (i <= (j + e + step - 1) / parts)
        largest = greater(upper_parts<step>(i, j + e, sign, x + e), largest);
#pragma GCC unroll 8
      for (int l = 0; l < step; ++l)
        if (i > (j + e + l) / parts) x[e + l] = lower(j + e + l);
    }
    largest_r_ = greater(largest, largest_r_);
  }

  [[gnu::noinline]] void store_r(const Pack<T>& pack) {
    InMemory::write(
        pack.r, pack.count, s_.r_rows, parts * s_.n, [&]<int N>(index_t i, index_t j, VT* x) {
          upper_row<N>(i, j, i < s_.k ? sign_[i] : V{}, x, [](index_t) { return VT{}; });
        });
  }

  [[gnu::noinline]] void store_q(const Pack<T>& pack) {
    const index_t of_panel = this->panel_vectors();
    InMemory::write(
        pack.q, pack.count, s_.m, parts * s_.q_cols, [&]<int N>(index_t i, index_t j, VT* x) {
          const V* from = &at(i, j);
#pragma GCC unroll 16
          for (int e = 0; e < N; ++e)
            x[e] = __builtin_convertvector(
                from[e / row_vectors * of_panel + e % row_vectors] * sign_[(j + e) / parts], VT);
        });
  }

  /// Stores V\R and tau.
  [[gnu::noinline]] void store_reflectors(const Pack<T>& pack) {
    InMemory::write(
        pack.v, pack.count, s_.m, parts * s_.n, [&]<int N>(index_t i, index_t j, VT* x) {
          upper_row<N>(i, j, broadcast(1), x,
                       [&](index_t column) { return __builtin_convertvector(at(i, column), VT); });
        });
    InMemory::write(pack.tau, pack.count, 1, parts * s_.k, [&]<int N>(index_t, index_t j, VT* x) {
      for (int e = 0; e < N; ++e) {
        E tau = stored_tau((j + e) / parts);
        x[e] = __builtin_convertvector(part_of(tau, static_cast<int>((j + e) % parts)), VT);
      }
    });
  }

  /// Returns tau for the stored V. If V was rounded, tau is computed from the rounded V, so that I
  /// - tau v v^H is unitary to the last bit of T.
  E stored_tau(index_t j) const {
    const E& tau = t_[j / width * width * width + j % width * (width + 1)];
    if constexpr (sizeof(T) == sizeof(C)) {
      return tau;
    } else {
      V vv = broadcast(1);
      for (index_t i = j + 1; i < s_.m; ++i) {
        E v;
        for (int part = 0; part < parts; ++part) {
          const VT rounded = __builtin_convertvector(at(i, parts * j + part), VT);
          part_of(v, part) = __builtin_convertvector(rounded, V);
        }
        vv += square_of(v);
      }
      return tau_for(tau, vv);
    }
  }

  void store_outcomes(const Pack<T>& pack) const {
    for (index_t l = 0; l < pack.count; ++l) {
      const bool finite = is_finite_[l] != 0;
      pack.outcomes[l] = {finite, largest_r_[l] < infinity_bits,
                          finite ? static_cast<int>(this->scale_[l]) : 0};
    }
  }

  // ---- arithmetic

  /// Overwrites V with Q = H_0 .. H_k-1 I, backward: panel b of Q needs only the panels of V to its
  /// left and its own.
  void form_q() {
    const index_t panels = panels_of(s_.k);
    for (index_t b = panels_of(s_.q_cols) - 1; b >= 0; --b) {
      const index_t j = b * width, above = b < panels ? j : s_.m;
      for (index_t e = 0; e < above * row_vectors; ++e) row_of(b, 0)[e] = V{};
      if (b < panels) {
        panel(b).start_q(t_ + j * width);
      } else {
        for (index_t q = 0; q < width && j + q < s_.m; ++q)
          at(j + q, parts * (j + q)) = broadcast(1);
      }
      for (index_t p = (b < panels ? b : panels) - 1; p >= 0; --p)
        this->template apply_panel<false>(p, b, (p + 1) * width);
    }
  }

  const Shape s_;
  const Base* r_ = this;  // where R is
  V* sign_;               // the sign of R_ii; 1 for the columns of Q beyond k
  IntT largest_r_{};
};

template <class T, class C, int parts>
constexpr Routine<T> routine{Factorization<T, C, parts>::lanes,
                             Factorization<T, C, parts>::workspace_bytes,
                             Factorization<T, C, parts>::factor};
template <int parts>
constexpr Routines<Routine> routines{routine<float, float, parts>, routine<float, double, parts>,
                                     routine<double, double, parts>};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), routines<1>,
                                                   routines<2>};

}  // namespace qrtool::batched
