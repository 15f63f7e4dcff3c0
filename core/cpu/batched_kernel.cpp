// SPDX-License-Identifier: Apache-2.0
// batched_kernel.cpp: Householder QR of as many matrices as a SIMD vector has lanes (LAPACK geqrf,
// orgqr), compiled once for every instruction set.
//
// A vector holds entry (i, j) of `lanes` matrices, so that every step of the textbook algorithm is
// a vector instruction without a shuffle, whatever the size:
//
//     matrices in memory              pack: column-major vectors
//     a a a   b b b   c c c   ...     [a b c ..] [a b c ..] [a b c ..]
//     a a a   b b b   c c c           [a b c ..] [a b c ..] [a b c ..]
//
// Columns are taken four at a time, H_j H_j+1 H_j+2 H_j+3 = I - V T V' (LAPACK larft, compact WY):
// every entry to their right is then loaded twice and stored once per four reflectors.
//
//     R R R R R R R R
//     v R R R R R R R       panel at column j: rows from j on, copied to rows of four vectors
//     v v|p p p p|c c       p: factor_panel       c: apply_block, C := (I - V T' V') C
//     v v|p p p p|c c
//
// Q is formed backward in the place of V: the panel at row j meets Q[j:, j:] only.
//
// Where lanes differ (zero columns, tiny columns, NaN) both answers are computed and selected, so
// no lane sees another.
#include "core/cpu/batched_kernel.hpp"

#include <utility>

#include "core/cpu/simd.hpp"

namespace qrtool::batched {
namespace {

/// Columns per panel.
constexpr int width = 4;
/// Columns that a panel is applied to at a time: 4 x 4 sums take 16 of AVX-512's and ARM's 32
/// registers, 4 x 2 take 8 of the 16 that others have. Panels of 8 were slower up to 128 columns.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int block = 4;
#else
constexpr int block = 2;
#endif
/// Rows that are summed plainly; sums of sums err by far less than one long sum.
constexpr index_t sum_rows = 32;

/// Swaps the blocks off the diagonal of every 2H x 2H block: rows x and y = x + H of it.
template <int H, class V, int... I>
[[gnu::always_inline]] inline void swap_blocks(V& x, V& y, std::integer_sequence<int, I...>) {
  constexpr int lanes = sizeof...(I);
  const V first = __builtin_shufflevector(x, y, (I & H ? lanes + I - H : I)...);
  y = __builtin_shufflevector(x, y, (I & H ? lanes + I : I + H)...);
  x = first;
}

/// x[i][j] := x[j][i].
template <int L, int H = 1, class V>
[[gnu::always_inline]] inline void transpose(V (&x)[L]) {
  if constexpr (H < L) {
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) {
      if ((i & H) == 0) swap_blocks<H>(x[i], x[i + H], std::make_integer_sequence<int, L>());
    }
    transpose<L, 2 * H>(x);
  }
}

/// T is stored, C computed in.
template <class T, class C>
class Factorization : Lanes<T, C> {
  using Base = Lanes<T, C>;
  using typename Base::Int, typename Base::IntT, typename Base::V, typename Base::VT;
  using UnalignedVT = typename VectorOf<T, Base::lanes>::unaligned;
  using Base::exponent_of, Base::infinity_bits, Base::magnitude_bits, Base::split_power;

 public:
  using Base::lanes;

  static std::size_t workspace_bytes(const Shape& shape) {
    return Factorization(shape, nullptr).vectors_ * sizeof(V);
  }

  static void factor(const Shape& shape, const Pack<T>& pack, std::byte* workspace) {
    Factorization f(shape, reinterpret_cast<V*>(workspace));
    f.load(pack);
    f.factor_columns();
    if (shape.is_raw) {
      f.store_reflectors(pack);
    } else {
      f.choose_signs();
      f.store_r(pack);
      if (shape.q_cols > 0) {
        f.form_q();
        f.store_q(pack);
      }
    }
    f.store_outcomes(pack);
  }

 private:
  Factorization(const Shape& shape, V* workspace) : s_(shape) {
    // An odd distance of columns: a power of two would put entries of one row into one cache set.
    ld_ = s_.m | 1;
    const index_t columns = s_.n > s_.q_cols ? s_.n : s_.q_cols;
    const index_t panels = (s_.k + width - 1) / width;
    const auto take = [&](index_t vectors) {
      V* first = workspace == nullptr ? nullptr : workspace + vectors_;
      vectors_ += static_cast<std::size_t>(vectors);
      return first;
    };
    a_ = take(columns * ld_);
    panel_ = take(s_.m * width);
    t_ = take(panels * width * width);
    sign_ = take(s_.k);
    up_ = take(2 * s_.n);
    largest_ = reinterpret_cast<IntT*>(take(s_.n));
  }

  static V broadcast(C x) { return V{} + x; }

  // ---- between rows in memory and vectors

  /// Goes through a rows x cols matrix in row-major order.
  struct Position {
    index_t i = 0, j = 0, cols;
    void advance() {
      if (++j == cols) {
        j = 0;
        ++i;
      }
    }
  };

  /// body(first entry, entries, offset in memory) for runs that lie side by side in memory: the
  /// whole matrix, or a row.
  template <class View, class Body>
  static void for_runs(const View& view, index_t rows, index_t cols, Body body) {
    if (view.ld == cols) {
      body(Position{0, 0, cols}, rows * cols, index_t{0});
    } else {
      for (index_t i = 0; i < rows; ++i) body(Position{i, 0, cols}, cols, i * view.ld);
    }
  }

  /// A into the pack, and the largest entry of every column. Lanes without a matrix repeat the
  /// first.
  [[gnu::noinline]] void load(const Pack<T>& pack) {
    for (index_t j = 0; j < s_.n; ++j) largest_[j] = IntT{};
    for_runs(pack.a, s_.m, s_.n, [&](Position at, index_t entries, index_t offset) {
      for (index_t first = 0; first < entries; first += lanes) {
        const T* from = pack.a.data + offset + first;
        if (entries - first >= lanes) {
          load_tile(from, pack.a.stride, pack.count, lanes, at);
        } else {
          T part[lanes * lanes] = {};
          const auto bytes = static_cast<std::size_t>(entries - first) * sizeof(T);
          for (index_t l = 0; l < pack.count; ++l)
            __builtin_memcpy(part + l * lanes, from + l * pack.a.stride, bytes);
          load_tile(part, lanes, pack.count, entries - first, at);
        }
      }
    });
    scale_columns();
  }

  /// `entries` <= lanes entries from `at` on, of every matrix.
  void load_tile(const T* from, index_t stride, index_t count, index_t entries, Position& at) {
    VT x[lanes];
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l)
      x[l] = *reinterpret_cast<const UnalignedVT*>(from + (l < count ? l * stride : 0));
    transpose(x);
#pragma GCC unroll 16
    for (int e = 0; e < lanes; ++e) {
      if (e >= entries) break;
      const IntT bits = magnitude_bits(x[e]);
      IntT& largest = largest_[at.j];
      largest = bits > largest ? bits : largest;
      a_[at.j * ld_ + at.i] = __builtin_convertvector(x[e], V);
      at.advance();
    }
  }

  /// A := A D with D = diag(2^-e_j); a matrix with NaN or Inf becomes zero.
  [[gnu::noinline]] void scale_columns() {
    IntT most{};
    for (index_t j = 0; j < s_.n; ++j) most = largest_[j] > most ? largest_[j] : most;
    is_finite_ = most < infinity_bits;
    scale_ = exponent_of(most);
    const bool all_finite = !any(~is_finite_);
    const Int keep = __builtin_convertvector(is_finite_, Int);
    for (index_t j = 0; j < s_.n; ++j) {
      const Int e = __builtin_convertvector(exponent_of(largest_[j]), Int) & keep;
      V down[2];
      split_power(-e, down);
      split_power(e, up_ + 2 * j);
      V* column = a_ + j * ld_;
      for (index_t i = 0; i < s_.m; ++i) column[i] = column[i] * down[0] * down[1];
      if (all_finite) continue;
      for (index_t i = 0; i < s_.m; ++i)
        column[i] = reinterpret_cast<V>(reinterpret_cast<Int>(column[i]) & keep);
    }
  }

  /// Entry (i, j) of every matrix := value(i, j), a vector of T.
  template <class Value>
  static void store(const Strided<T>& out, index_t count, index_t rows, index_t cols, Value value) {
    for_runs(out, rows, cols, [&](Position at, index_t entries, index_t offset) {
      for (index_t first = 0; first < entries; first += lanes) {
        T* to = out.data + offset + first;
        if (entries - first >= lanes) {
          store_tile(to, out.stride, count, lanes, at, value);
        } else {
          T part[lanes * lanes];
          store_tile(part, lanes, count, entries - first, at, value);
          const auto bytes = static_cast<std::size_t>(entries - first) * sizeof(T);
          for (index_t l = 0; l < count; ++l)
            __builtin_memcpy(to + l * out.stride, part + l * lanes, bytes);
        }
      }
    });
  }

  template <class Value>
  static void store_tile(T* to, index_t stride, index_t count, index_t entries, Position& at,
                         Value value) {
    VT x[lanes];
#pragma GCC unroll 16
    for (int e = 0; e < lanes; ++e) {
      x[e] = VT{};
      if (e >= entries) continue;
      x[e] = value(at.i, at.j);
      at.advance();
    }
    transpose(x);
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) {
      if (l >= count) break;
      *reinterpret_cast<UnalignedVT*>(to + l * stride) = x[l];
    }
  }

  void choose_signs() {
    const V one = broadcast(1);
    for (index_t i = 0; i < s_.k; ++i)
      sign_[i] = s_.is_positive ? (a_[i * ld_ + i] < 0 ? -one : one) : one;
  }

  /// R D^-1, rounded once; + 0 turns -0 into +0.
  VT stored_r(index_t i, index_t j, V sign) {
    const V scaled = a_[j * ld_ + i] * sign * up_[2 * j] * up_[2 * j + 1];
    const VT r = __builtin_convertvector(scaled, VT) + VT{};
    r_fits_ &= magnitude_bits(r) < infinity_bits;
    return r;
  }

  [[gnu::noinline]] void store_r(const Pack<T>& pack) {
    store(pack.r, pack.count, s_.r_rows, s_.n,
          [&](index_t i, index_t j) { return i <= j ? stored_r(i, j, sign_[i]) : VT{}; });
  }

  [[gnu::noinline]] void store_q(const Pack<T>& pack) {
    store(pack.q, pack.count, s_.m, s_.q_cols, [&](index_t i, index_t j) {
      const V q = a_[j * ld_ + i];
      return __builtin_convertvector(j < s_.k ? q * sign_[j] : q, VT);
    });
  }

  const V& tau(index_t j) const { return t_[j / width * width * width + j % width * (width + 1)]; }

  /// V\R and tau. Where V was rounded, tau = 2 / v'v follows the rounded V, so that I - tau v v' is
  /// orthogonal to the last bit that T has.
  void store_reflectors(const Pack<T>& pack) {
    store(pack.v, pack.count, s_.m, s_.n, [&](index_t i, index_t j) {
      return i <= j ? stored_r(i, j, broadcast(1)) : __builtin_convertvector(a_[j * ld_ + i], VT);
    });
    store(pack.tau, pack.count, 1, s_.k, [&](index_t, index_t j) {
      if constexpr (sizeof(T) == sizeof(C)) {
        return tau(j);
      } else {
        V vv = broadcast(1);
        for (index_t i = j + 1; i < s_.m; ++i) {
          const VT rounded = __builtin_convertvector(a_[j * ld_ + i], VT);
          const V v = __builtin_convertvector(rounded, V);
          vv += v * v;
        }
        return __builtin_convertvector(tau(j) != 0 ? 2 / vv : V{}, VT);
      }
    });
  }

  void store_outcomes(const Pack<T>& pack) const {
    for (index_t l = 0; l < pack.count; ++l) {
      const bool finite = is_finite_[l] != 0;
      pack.outcomes[l] = {finite, r_fits_[l] != 0, finite ? static_cast<int>(scale_[l]) : 0};
    }
  }

  // ---- arithmetic

  /// body(first, end) for blocks of rows that are summed plainly.
  template <class Body>
  static void for_sums(index_t first, index_t rows, Body body) {
    for (; first < rows; first += sum_rows)
      body(first, first + sum_rows < rows ? first + sum_rows : rows);
  }

  void load_panel(const V* a, index_t rows, index_t columns) {
    for (index_t i = 0; i < rows; ++i)
      for (int p = 0; p < width; ++p) panel_[i * width + p] = p < columns ? a[p * ld_ + i] : V{};
  }

  /// V's upper triangle holds R: V itself has ones on the diagonal and zeros above.
  void make_unit_lower(index_t columns) {
    for (index_t p = 0; p < columns; ++p)
      for (index_t i = 0; i <= p; ++i) panel_[i * width + p] = broadcast(i == p ? 1 : 0);
  }

  void factor_columns() {
    for (index_t j = 0; j < s_.k; j += width) {
      const index_t columns = s_.k - j < width ? s_.k - j : width;
      V* a = a_ + j * ld_ + j;
      V* t = t_ + j * width;
      factor_panel(a, s_.m - j, columns, t);
      apply_panel<true>(s_.m - j, t, a + columns * ld_, s_.n - j - columns);
    }
  }

  /// V\R of a panel in place, V in panel_, and T; columns that the panel lacks are zero in both.
  [[gnu::noinline]] void factor_panel(V* a, index_t rows, index_t columns, V* t) {
    load_panel(a, rows, columns);
    for (int p = 0; p < width * width; ++p) t[p] = V{};
    V tail = sum_of_squares<0>(rows);
    tail = factor_column<0>(rows, tail, t);
    if (columns > 1) tail = factor_column<1>(rows, tail, t);
    if (columns > 2) tail = factor_column<2>(rows, tail, t);
    if (columns > 3) factor_column<3>(rows, tail, t);
    for (index_t i = 0; i < rows; ++i)
      for (index_t p = 0; p < columns; ++p) a[p * ld_ + i] = panel_[i * width + p];
    make_unit_lower(columns);
  }

  /// Of column P below its diagonal.
  template <int P>
  V sum_of_squares(index_t rows, C factor = 1) const {
    V sum{};
    for_sums(P + 1, rows, [&](index_t first, index_t end) {
      V part{};
      for (index_t i = first; i < end; ++i) {
        const V x = panel_[i * width + P] * factor;
        part += x * x;
      }
      sum += part;
    });
    return sum;
  }

  struct Reflector {
    V beta, tau, raise, inverse;  // v = x raise inverse
  };

  /// H (alpha, x) = (beta, 0), tail = x'x (LAPACK larfg). A column that is too small to be squared
  /// is raised by a power of two.
  template <int P>
  Reflector make_reflector(index_t rows, V tail) const {
    using F = Format<C>;
    const V alpha = panel_[P * width + P], one = broadcast(1);
    V raised_tail = one;  // only where it matters
    if (any(tail < F::small_squares)) raised_tail = sum_of_squares<P>(rows, F::raise);
    const Int is_small = alpha * alpha + tail < F::small_squares;
    Reflector h;
    h.raise = is_small ? broadcast(F::raise) : one;
    const V a = alpha * h.raise, t = is_small ? raised_tail : tail;
    V norm = a * a + t;
    for (int l = 0; l < lanes; ++l) norm[l] = square_root(norm[l]);
    const V b = a >= 0 ? -norm : norm;
    // x = 0: H = I.
    const Int is_zero = (tail < F::small_squares) & (raised_tail == 0);
    h.inverse = is_zero ? V{} : one / (a - b);
    h.beta = is_zero ? alpha : b * (is_small ? broadcast(F::lower) : one);
    // 2 / v'v for the very `inverse` that makes v: LAPACK's (beta - alpha) / beta is the same
    // number, but rounds on its own, and H is then farther from orthogonal.
    h.tau = is_zero ? V{} : 2 / (one + h.inverse * t * h.inverse);
    return h;
  }

  /// Column P of a panel: its reflector, T's column P, and the columns right of it updated.
  /// Returns x'x of the next column, below its diagonal.
  template <int P>
  V factor_column(index_t rows, V tail, V* t) {
    const Reflector h = make_reflector<P>(rows, tail);
    // v'a_p for the columns right of P, v'v_p for those left of it.
    V dots[width];
    for (int p = 0; p < width; ++p) dots[p] = panel_[P * width + p];
    panel_[P * width + P] = h.beta;
    for_sums(P + 1, rows, [&](index_t first, index_t end) {
      V part[width] = {};
      for (index_t i = first; i < end; ++i) {
        V* row = panel_ + i * width;
        const V v = row[P] * h.raise * h.inverse;
        row[P] = v;
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p)
          if (p != P) part[p] += v * row[p];
      }
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p) dots[p] += part[p];
    });
    // T(0:P, P) = -tau T(0:P, 0:P) V'v, T(P, P) = tau.
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      V sum{};
#pragma GCC unroll 4
      for (int q = p; q < P; ++q) sum += t[p * width + q] * dots[q];
      t[p * width + P] = -h.tau * sum;
    }
    t[P * width + P] = h.tau;
    if constexpr (P + 1 < width) {
      return update_columns<P>(rows, h.tau, dots);
    } else {
      return V{};
    }
  }

  /// a_p -= tau (v'a_p) v for the columns right of P.
  template <int P>
  V update_columns(index_t rows, V tau, const V* dots) {
    V w[width];
#pragma GCC unroll 4
    for (int p = P + 1; p < width; ++p) {
      w[p] = tau * dots[p];
      panel_[P * width + p] -= w[p];
    }
    V tail{};
    for_sums(P + 1, rows, [&](index_t first, index_t end) {
      V part{};
      for (index_t i = first; i < end; ++i) {
        V* row = panel_ + i * width;
        const V v = row[P];
#pragma GCC unroll 4
        for (int p = P + 1; p < width; ++p) row[p] -= w[p] * v;
        if (i > P + 1) part += row[P + 1] * row[P + 1];
      }
      tail += part;
    });
    return tail;
  }

  /// C := (I - V T V') C, or with T', for `columns` columns of the pack from `c` on.
  template <bool is_transposed>
  void apply_panel(index_t rows, const V* t, V* c, index_t columns) const {
    index_t j = 0;
    for (; j + block <= columns; j += block)
      apply_block<is_transposed, block>(rows, t, c + j * ld_);
    for (; j < columns; ++j) apply_block<is_transposed, 1>(rows, t, c + j * ld_);
  }

  template <bool is_transposed, int columns>
  [[gnu::noinline]] void apply_block(index_t rows, const V* t, V* c) const {
    const index_t ld = ld_;
    // W := V'C
    V w[width][columns] = {};
    for_sums(0, rows, [&](index_t first, index_t end) {
      V part[width][columns] = {};
      for (index_t i = first; i < end; ++i) {
        const V* v = panel_ + i * width;
#pragma GCC unroll 4
        for (int q = 0; q < columns; ++q) {
          const V x = c[q * ld + i];
#pragma GCC unroll 4
          for (int p = 0; p < width; ++p) part[p][q] += v[p] * x;
        }
      }
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
#pragma GCC unroll 4
        for (int q = 0; q < columns; ++q) w[p][q] += part[p][q];
    });
    multiply_by_t<is_transposed>(t, w);
    // C := C - V W
    for (index_t i = 0; i < rows; ++i) {
      // A copy: the stores below cannot change it.
      const V v[width] = {panel_[i * width], panel_[i * width + 1], panel_[i * width + 2],
                          panel_[i * width + 3]};
#pragma GCC unroll 4
      for (int q = 0; q < columns; ++q) {
        V x = c[q * ld + i];
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) x -= v[p] * w[p][q];
        c[q * ld + i] = x;
      }
    }
  }

  /// W := T W or T'W; T is upper triangular.
  template <bool is_transposed, int columns>
  static void multiply_by_t(const V* t, V (&w)[width][columns]) {
#pragma GCC unroll 4
    for (int s = 0; s < width; ++s) {
      const int p = is_transposed ? width - 1 - s : s;
      V sum[columns] = {};
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o) {
        if (is_transposed ? o > p : o < p) continue;
        const V y = t[is_transposed ? o * width + p : p * width + o];
#pragma GCC unroll 4
        for (int q = 0; q < columns; ++q) sum[q] += y * w[o][q];
      }
#pragma GCC unroll 4
      for (int q = 0; q < columns; ++q) w[p][q] = sum[q];
    }
  }

  /// Q = H_0 .. H_k-1 I in the place of V, backward.
  void form_q() {
    for (index_t j = s_.k; j < s_.q_cols; ++j)
      for (index_t i = 0; i < s_.m; ++i) a_[j * ld_ + i] = broadcast(i == j ? 1 : 0);
    for (index_t j = (s_.k - 1) / width * width; j >= 0; j -= width) {
      const index_t columns = s_.k - j < width ? s_.k - j : width;
      V* a = a_ + j * ld_ + j;
      const V* t = t_ + j * width;
      load_panel(a, s_.m - j, columns);
      make_unit_lower(columns);
      apply_panel<false>(s_.m - j, t, a + columns * ld_, s_.q_cols - j - columns);
      for (index_t q = 0; q < columns; ++q) {
        V* column = a_ + (j + q) * ld_;
        for (index_t i = 0; i < s_.m; ++i) column[i] = broadcast(i == j + q ? 1 : 0);
      }
      apply_panel<false>(s_.m - j, t, a, columns);
    }
  }

  const Shape s_;
  index_t ld_;               // vectors from a column to the next
  std::size_t vectors_ = 0;  // of workspace
  V* a_;                     // A, then V\R, then Q
  V* panel_;                 // rows of `width` vectors
  V* t_;                     // width x width for every panel
  V* sign_;                  // of R_ii
  V* up_;                    // 2^e_j in two factors
  IntT* largest_;            // |a_ij| of a column, as bits
  IntT is_finite_, scale_, r_fits_ = ~IntT{};
};

template <class T, class C>
constexpr Routine<T> routine{Factorization<T, C>::lanes, Factorization<T, C>::workspace_bytes,
                             Factorization<T, C>::factor};

}  // namespace

#define QRTOOL_JOIN(a, b) a##b
#define QRTOOL_KERNELS(target) QRTOOL_JOIN(target, _kernels)
#define QRTOOL_STRING(x) #x
#define QRTOOL_NAME(target) QRTOOL_STRING(target)

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET),
                                                   routine<float, float>, routine<float, double>,
                                                   routine<double, double>};

}  // namespace qrtool::batched
