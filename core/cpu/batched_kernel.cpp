// SPDX-License-Identifier: Apache-2.0
// batched_kernel.cpp: Householder QR of as many matrices as a SIMD vector has lanes (LAPACK geqrf,
// orgqr), compiled once for every instruction set.
//
// A vector holds entry (i, j) of `lanes` matrices, so that every step of the textbook algorithm is
// a vector instruction without a shuffle, whatever the size:
//
//     matrices in memory              pack: vectors, four columns side by side
//     a a a   b b b   c c c   ...     [a b c ..] [a b c ..] [a b c ..]
//     a a a   b b b   c c c           [a b c ..] [a b c ..] [a b c ..]
//
// Columns are taken four at a time, H_j H_j+1 H_j+2 H_j+3 = I - V T V' (LAPACK larft, compact WY):
// every entry to their right is then loaded twice and stored once per four reflectors. A panel of
// four columns meets all panels to its left while it stays in the first cache (left-looking): only
// V streams through, and nothing is written back.
//
//     R R|R R|R R|
//     v R|R R|R R|      c: scale_panel, then apply_panel of all v: C := (I - V T' V') C,
//     v v|v R|c c|      then factor_panel
//     v v|v v|c c|
//
// Q is formed backward, panel by panel in the place of V: the panel at row j meets Q[j:, :] only.
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
/// Columns that V is applied to at a time: 4 x 4 sums take 16 of AVX-512's and ARM's 32
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
    const index_t columns = s_.n > s_.q_cols ? s_.n : s_.q_cols;
    const index_t panels = panels_of(s_.k);
    const auto take = [&](index_t vectors) {
      V* first = workspace == nullptr ? nullptr : workspace + vectors_;
      vectors_ += static_cast<std::size_t>(vectors);
      return first;
    };
    a_ = take(panels_of(columns) * s_.m * width);
    top_ = take(panels * width * width);
    t_ = take(panels * width * width);
    sign_ = take(s_.k);
    up_ = take(2 * s_.n);
    largest_ = reinterpret_cast<IntT*>(take(s_.n));
  }

  static V broadcast(C x) { return V{} + x; }

  static index_t panels_of(index_t columns) { return (columns + width - 1) / width; }

  /// Row i of panel p: four vectors.
  V* row_of(index_t p, index_t i) const { return a_ + (p * s_.m + i) * width; }
  V& at(index_t i, index_t j) const { return row_of(j / width, i)[j % width]; }

  /// V\R where V has its ones and zeros in the place of R.
  const V& r_at(index_t i, index_t j) const {
    return i / width == j / width ? top_[i * width + j % width] : at(i, j);
  }

  // ---- between rows in memory and vectors

  /// Goes through a rows x cols matrix in row-major order, a tile of `lanes` entries at a time.
  struct Anywhere {
    index_t i, j, cols;
    /// body(e, i, j) for entry e of the tile.
    template <class Body>
    [[gnu::always_inline]] void each(index_t entries, Body body) {
#pragma GCC unroll 16
      for (int e = 0; e < lanes; ++e) {
        if (e >= entries) break;
        body(e, i, j);
        if (++j == cols) {
          j = 0;
          ++i;
        }
      }
    }
  };
  /// The same where tiles do not cross rows.
  struct WithinRow {
    index_t i, j;
    template <class Body>
    [[gnu::always_inline]] void each(index_t, Body body) {
#pragma GCC unroll 16
      for (int e = 0; e < lanes; ++e) body(e, i, j + e);
    }
  };

  /// body(tile, offset in memory, entries) for a rows x cols matrix; tiles cross rows where these
  /// lie side by side.
  template <class View, class Body>
  static void for_tiles(const View& view, index_t rows, index_t cols, Body body) {
    if (cols % lanes == 0) {
      for (index_t i = 0; i < rows; ++i) {
        for (index_t j = 0; j < cols; j += lanes) {
          WithinRow tile{i, j};
          body(tile, i * view.ld + j, index_t{lanes});
        }
      }
      return;
    }
    const bool is_packed = view.ld == cols;
    const index_t runs = is_packed ? 1 : rows, run = is_packed ? rows * cols : cols;
    for (index_t i = 0; i < runs; ++i) {
      Anywhere tile{i, 0, cols};
      for (index_t first = 0; first < run; first += lanes)
        body(tile, i * view.ld + first, run - first < lanes ? run - first : index_t{lanes});
    }
  }

  /// Eight lines further on in the same matrix, where eight matrices are read or written a line at
  /// a time: 7 to 15 % at 32x32 and 64x64 in float64, nothing for the sixteen matrices of float32.
  template <int is_write>
  static void prefetch(const T* row) {
    if constexpr (sizeof(VT) == 64 && lanes == 8) {
      const auto at = reinterpret_cast<std::uintptr_t>(row) + 8 * sizeof(VT);
      __builtin_prefetch(reinterpret_cast<const void*>(at), is_write);
    }
  }

  /// A into the pack, and the largest entry of every column. Lanes without a matrix repeat the
  /// first; columns that the last panel lacks are zero.
  [[gnu::noinline]] void load(const Pack<T>& pack) {
    for (index_t j = 0; j < s_.n; ++j) largest_[j] = IntT{};
    for (index_t j = s_.n; j % width != 0; ++j)
      for (index_t i = 0; i < s_.m; ++i) at(i, j) = V{};
    for_tiles(pack.a, s_.m, s_.n, [&](auto& tile, index_t offset, index_t entries) {
      const T* from = pack.a.data + offset;
      if (entries == lanes) {
        load_tile(from, pack.a.stride, pack.count, entries, tile);
      } else {
        T part[lanes * lanes] = {};
        const auto bytes = static_cast<std::size_t>(entries) * sizeof(T);
        for (index_t l = 0; l < pack.count; ++l)
          __builtin_memcpy(part + l * lanes, from + l * pack.a.stride, bytes);
        load_tile(part, lanes, pack.count, entries, tile);
      }
    });
    IntT most{};
    for (index_t j = 0; j < s_.n; ++j) most = largest_[j] > most ? largest_[j] : most;
    is_finite_ = most < infinity_bits;
    scale_ = exponent_of(most);
  }

  /// `entries` <= lanes entries of every matrix.
  template <class Tile>
  void load_tile(const T* from, index_t stride, index_t count, index_t entries, Tile& tile) {
    VT x[lanes];
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) {
      const T* row = from + (l < count ? l * stride : 0);
      x[l] = *reinterpret_cast<const UnalignedVT*>(row);
      prefetch<0>(row);
    }
    transpose(x);
    tile.each(entries, [&](int e, index_t i, index_t j) {
      const IntT bits = magnitude_bits(x[e]);
      IntT& largest = largest_[j];
      largest = bits > largest ? bits : largest;
      at(i, j) = __builtin_convertvector(x[e], V);
    });
  }

  /// Panel p := panel p D with D = diag(2^-e_j); a matrix with NaN or Inf becomes zero.
  [[gnu::noinline]] void scale_panel(index_t p) {
    const Int keep = __builtin_convertvector(is_finite_, Int);
    V down[width][2];
    for (index_t q = 0; q < width; ++q) {
      const index_t j = p * width + q;
      Int e{};
      if (j < s_.n) e = __builtin_convertvector(exponent_of(largest_[j]), Int) & keep;
      split_power(-e, down[q]);
      if (j < s_.n) split_power(e, up_ + 2 * j);
    }
    V* rows = row_of(p, 0);
    for (index_t i = 0; i < s_.m; ++i) {
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q)
        rows[i * width + q] = rows[i * width + q] * down[q][0] * down[q][1];
    }
    if (!any(~is_finite_)) return;
    for (index_t e = 0; e < s_.m * width; ++e)
      rows[e] = reinterpret_cast<V>(reinterpret_cast<Int>(rows[e]) & keep);
  }

  /// Entry (i, j) of every matrix := value(i, j), a vector of T.
  template <class Value>
  static void store(const Strided<T>& out, index_t count, index_t rows, index_t cols, Value value) {
    for_tiles(out, rows, cols, [&](auto& tile, index_t offset, index_t entries) {
      T* to = out.data + offset;
      if (entries == lanes) {
        store_tile(to, out.stride, count, entries, tile, value);
      } else {
        T part[lanes * lanes];
        store_tile(part, lanes, count, entries, tile, value);
        const auto bytes = static_cast<std::size_t>(entries) * sizeof(T);
        for (index_t l = 0; l < count; ++l)
          __builtin_memcpy(to + l * out.stride, part + l * lanes, bytes);
      }
    });
  }

  template <class Tile, class Value>
  static void store_tile(T* to, index_t stride, index_t count, index_t entries, Tile& tile,
                         Value value) {
    VT x[lanes] = {};
    tile.each(entries, [&](int e, index_t i, index_t j) { x[e] = value(i, j); });
    transpose(x);
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) {
      if (l >= count) break;
      *reinterpret_cast<UnalignedVT*>(to + l * stride) = x[l];
      prefetch<1>(to + l * stride);
    }
  }

  void choose_signs() {
    const V one = broadcast(1);
    for (index_t i = 0; i < s_.k; ++i)
      sign_[i] = s_.is_positive ? (r_at(i, i) < 0 ? -one : one) : one;
  }

  /// R D^-1, rounded once; + 0 turns -0 into +0.
  VT stored_r(index_t i, index_t j, V sign) {
    const V scaled = r_at(i, j) * sign * up_[2 * j] * up_[2 * j + 1];
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
      const V q = at(i, j);
      return __builtin_convertvector(j < s_.k ? q * sign_[j] : q, VT);
    });
  }

  const V& tau(index_t j) const { return t_[j / width * width * width + j % width * (width + 1)]; }

  /// V\R and tau. Where V was rounded, tau = 2 / v'v follows the rounded V, so that I - tau v v' is
  /// orthogonal to the last bit that T has.
  void store_reflectors(const Pack<T>& pack) {
    store(pack.v, pack.count, s_.m, s_.n, [&](index_t i, index_t j) {
      return i <= j ? stored_r(i, j, broadcast(1)) : __builtin_convertvector(at(i, j), VT);
    });
    store(pack.tau, pack.count, 1, s_.k, [&](index_t, index_t j) {
      if constexpr (sizeof(T) == sizeof(C)) {
        return tau(j);
      } else {
        V vv = broadcast(1);
        for (index_t i = j + 1; i < s_.m; ++i) {
          const VT rounded = __builtin_convertvector(at(i, j), VT);
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

  void factor_columns() {
    const index_t panels = panels_of(s_.k);
    for (index_t b = 0; b < panels_of(s_.n); ++b) {
      scale_panel(b);
      for (index_t p = 0; p < (b < panels ? b : panels); ++p) apply_panel<true>(p, b, p * width);
      if (b < panels) factor_panel(b);
    }
  }

  /// V of panel p in place with its ones and zeros, R's part of it in top_, and T; columns that the
  /// panel lacks are zero in both.
  [[gnu::noinline]] void factor_panel(index_t p) {
    const index_t j = p * width, rows = s_.m - j, columns = s_.k - j < width ? s_.k - j : width;
    V* t = t_ + j * width;
    panel_ = row_of(p, j);
    for (int e = 0; e < width * width; ++e) t[e] = V{};
    V tail = sum_of_squares<0>(rows);
    tail = factor_column<0>(rows, tail, t);
    if (columns > 1) tail = factor_column<1>(rows, tail, t);
    if (columns > 2) tail = factor_column<2>(rows, tail, t);
    if (columns > 3) factor_column<3>(rows, tail, t);
    for (index_t i = 0; i < (rows < width ? rows : width); ++i) {
      for (index_t q = 0; q < width; ++q) {
        V& x = panel_[i * width + q];
        top_[(j + i) * width + q] = x;
        if (i <= q || q >= columns) x = broadcast(i == q && q < columns ? 1 : 0);
      }
    }
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

  /// C := (I - V T V') C, or with T', where V is panel p, C is panel b from row 4 p on, zero above
  /// row `first`.
  template <bool is_transposed>
  void apply_panel(index_t p, index_t b, index_t first) {
    const index_t j = p * width;
    panel_ = row_of(p, j);
    for (index_t q = 0; q < width; q += block)
      apply_block<is_transposed>(s_.m - j, first - j, t_ + j * width, row_of(b, j) + q);
  }

  template <bool is_transposed>
  [[gnu::noinline]] void apply_block(index_t rows, index_t from, const V* t, V* c) const {
    // W := V'C
    V w[width][block] = {};
    for_sums(from, rows, [&](index_t first, index_t end) {
      V part[width][block] = {};
      for (index_t i = first; i < end; ++i) {
        const V* v = panel_ + i * width;
#pragma GCC unroll 4
        for (int q = 0; q < block; ++q) {
          const V x = c[i * width + q];
#pragma GCC unroll 4
          for (int p = 0; p < width; ++p) part[p][q] += v[p] * x;
        }
      }
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
#pragma GCC unroll 4
        for (int q = 0; q < block; ++q) w[p][q] += part[p][q];
    });
    multiply_by_t<is_transposed>(t, w);
    // C := C - V W
    for (index_t i = 0; i < rows; ++i) {
      // A copy: the stores below cannot change it.
      const V v[width] = {panel_[i * width], panel_[i * width + 1], panel_[i * width + 2],
                          panel_[i * width + 3]};
#pragma GCC unroll 4
      for (int q = 0; q < block; ++q) {
        V x = c[i * width + q];
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) x -= v[p] * w[p][q];
        c[i * width + q] = x;
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

  /// Q = H_0 .. H_k-1 I in the place of V, backward: panel b needs none of V right of its own.
  void form_q() {
    const index_t panels = panels_of(s_.k);
    for (index_t b = panels_of(s_.q_cols) - 1; b >= 0; --b) {
      const index_t j = b * width, above = b < panels ? j : s_.m;
      for (index_t e = 0; e < above * width; ++e) row_of(b, 0)[e] = V{};
      if (b < panels) {
        start_q(b);
      } else {
        for (index_t q = 0; q < width && j + q < s_.m; ++q) at(j + q, j + q) = broadcast(1);
      }
      for (index_t p = (b < panels ? b : panels) - 1; p >= 0; --p)
        apply_panel<false>(p, b, (p + 1) * width);
    }
  }

  /// Panel b := (I - V T V') E in the place of its own V, E = columns j, .., j + 3 of I.
  [[gnu::noinline]] void start_q(index_t b) {
    const index_t j = b * width, rows = s_.m - j;
    V* v = row_of(b, j);
    V w[width][width] = {};  // V'E: V's first rows, transposed
    for (index_t q = 0; q < (rows < width ? rows : width); ++q)
      for (int p = 0; p < width; ++p) w[p][q] = v[q * width + p];
    multiply_by_t<false>(t_ + j * width, w);
    for (index_t i = 0; i < rows; ++i) {
      V* row = v + i * width;
      const V x[width] = {row[0], row[1], row[2], row[3]};
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
        V sum = broadcast(i == q ? 1 : 0);
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) sum -= x[p] * w[p][q];
        row[q] = sum;
      }
    }
  }

  const Shape s_;
  std::size_t vectors_ = 0;  // of workspace
  V* a_;                     // A, then V\R, then Q, in panels of m rows of `width` vectors
  V* top_;                   // R's part of the first rows of every V
  V* panel_ = nullptr;       // V from its first row on
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

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET),
                                                   routine<float, float>, routine<float, double>,
                                                   routine<double, double>};

}  // namespace qrtool::batched
