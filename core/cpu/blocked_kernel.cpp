// SPDX-License-Identifier: Apache-2.0
// blocked_kernel.cpp: Householder QR of one matrix in strips of 32 columns (LAPACK geqrt, gemqrt),
// compiled once for every instruction set.
//
// A strip is a row-major matrix of its own: a vector holds neighbouring columns of one row, sums
// over rows need no shuffles, and products with V read V as broadcast scalars. V never has to be
// packed, and a strip stays in the second cache while all panels to its left are applied to it
// (left-looking):
//
//     R|R|R|R      load strip s of A, each column scaled by a power of two
//     v R|R|.      for panels p < s:  C := (I - V_p T_p' V_p') C          apply
//     v v R|.      factor strip s in two leaves of 16 columns             factor_panel
//     v v v|.      store strip s of R
//
// Q is formed strip by strip too, backward: strip s of the identity meets panels s, .., 0, panel p
// its rows from 32 p on only, and is stored. Worker w of a team takes strips w, w + size, ..; each
// is computed by one worker in one order, so that the result does not depend on the team.
//
// Within a leaf one pass over the rows applies reflector c, turns column c into v, and sums the
// products of column c + 1 with all columns: those to its right are v'A, its own is the norm, those
// to its left are V'v for T (Puglisi 1992).
#include "core/cpu/blocked_kernel.hpp"

#include "core/cpu/simd.hpp"

namespace qrtool::blocked {
namespace {

/// Columns of a strip and of a leaf.
constexpr index_t width = 32, leaf = 16;
/// Rows are padded with zeros to whole tiles.
constexpr index_t tile_rows = 8;
/// Rows that are summed plainly; sums of sums err by far less than one long sum: with 64 rows a
/// constant 130x160 matrix was 1.14 bars off, with 32 it is 0.6.
constexpr index_t sum_rows = 32;
/// Reflectors per tile of V'C: with two vectors of columns 16 sums, or 8 where there are 16
/// registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_reflectors = 8;
#else
constexpr int tile_reflectors = 4;
#endif

constexpr index_t round_up(index_t x, index_t unit) { return (x + unit - 1) / unit * unit; }
constexpr index_t lesser(index_t x, index_t y) { return x < y ? x : y; }

/// T is stored, C computed in.
template <class T, class C>
class Factorization : Lanes<T, C> {
  using Base = Lanes<T, C>;
  using Base::exponent_of, Base::infinity_bits, Base::lanes, Base::magnitude_bits,
      Base::split_power;
  using typename Base::Int, typename Base::IntT, typename Base::V, typename Base::VT;
  using StoredV = typename VectorOf<C, lanes>::stored;
  typedef C StoredC __attribute__((may_alias));
  using UnalignedVT = typename VectorOf<T, lanes>::unaligned;

 public:
  static std::size_t workspace_bytes(const Shape& shape, int size) {
    return Factorization(shape, nullptr, size).bytes_;
  }

  static void factor(const Shape& shape, const Matrix<T>& matrix, std::byte* workspace,
                     const Team& team) {
    Factorization f(shape, workspace, team.size);
    f.factor_strips(matrix, team);
    if (shape.q_cols > 0) f.form_q(matrix.q, team);
  }

  static Outcome outcome(const Shape& shape, std::byte* workspace, int size) {
    const Factorization f(shape, workspace, size);
    typename Format<T>::Int largest = 0;
    for (index_t j = 0; j < shape.n; ++j)
      largest = f.largest_[j] > largest ? f.largest_[j] : largest;
    if (largest >= infinity_bits) return {false, true, 0};
    bool r_fits = true;
    for (index_t s = 0; s < f.strips_; ++s) r_fits &= f.r_fits_[s] != 0;
    return {true, r_fits, static_cast<int>(exponent_of(IntT{} + largest)[0])};
  }

 private:
  static constexpr int row_vectors = width / lanes, leaf_vectors = leaf / lanes;

  /// The reflectors of a panel, `count` of them. V starts at the panel's first row; its first 32
  /// rows have their ones and zeros written out in `top`, the others lie in the strip.
  struct Panel {
    const C *top, *rest;
    index_t top_rows, rest_rows, count;
    const C* t;  // T transposed: t[q * width + p] = T(p, q)
  };

  Factorization(const Shape& shape, std::byte* workspace, int size)
      : s_(shape),
        rows_(round_up(shape.m, tile_rows)),
        strips_((shape.n + width - 1) / width),
        panels_((shape.k + width - 1) / width) {
    const auto take = [&]<class E>(E*& member, index_t count) {
      member = workspace == nullptr ? nullptr : reinterpret_cast<E*>(workspace + bytes_);
      const auto size_of_e = static_cast<index_t>(sizeof(E));
      bytes_ += static_cast<std::size_t>(round_up(count * size_of_e, 64));
    };
    take(strip_, panels_ * rows_ * width);
    take(own_strip_, size * rows_ * width);
    take(top_, panels_ * width * width);
    take(t_, panels_ * width * width);
    take(sign_, panels_ * width);
    take(up_, 2 * strips_ * width);
    take(largest_, strips_ * width);
    take(r_fits_, strips_);
  }

  static V load(const C* x) { return *reinterpret_cast<const StoredV*>(x); }
  static void store(C* x, V value) { *reinterpret_cast<StoredV*>(x) = value; }

  // ---- which strip when

  void factor_strips(const Matrix<T>& matrix, const Team& team) {
    for (index_t s = team.worker; s < strips_; s += team.size) {
      C* strip = s < panels_ ? strip_ + s * rows_ * width : own_strip(team);
      const int vectors = vectors_of(s_.n - s * width);
      load_strip(matrix.a, s, strip);
      for (index_t p = 0; p < lesser(s, panels_); ++p) {
        if (team.size > 1) team.wait_for(team.self, p);
        apply<true>(panel(p), {true, true}, strip + p * width * width, vectors);
      }
      if (s < panels_) {
        factor_panel(s);
        choose_signs(s);
        if (team.size > 1) team.publish(team.self, s);
      }
      if (s_.is_raw) {
        store_reflectors(matrix, s, strip);
      } else {
        store_r(matrix.r, s, strip);
      }
    }
  }

  /// Q = H_0 .. H_k-1 I.
  void form_q(const Strided<T>& out, const Team& team) {
    if (team.size > 1) team.wait_for(team.self, panels_ - 1);
    C* q = own_strip(team);
    const index_t q_strips = (s_.q_cols + width - 1) / width;
    for (index_t s = q_strips - 1 - team.worker; s >= 0; s -= team.size) {
      const int vectors = vectors_of(s_.q_cols - s * width);
      for (index_t i = 0; i < rows_ * width; i += lanes) store(q + i, V{});
      for (index_t i = 0; i < lesser(width, s_.m - s * width); ++i)
        q[(s * width + i) * width + i] = 1;
      // Zeros above the strip's own ones, and, after panel p, above row 32 p.
      for (index_t p = lesser(s, panels_ - 1); p >= 0; --p)
        apply<false>(panel(p), {p == s, p != s}, q + p * width * width, vectors);
      store_q(out, s, q);
    }
  }

  C* own_strip(const Team& team) const { return own_strip_ + team.worker * rows_ * width; }

  static int vectors_of(index_t columns) {
    return static_cast<int>((lesser(columns, width) + lanes - 1) / lanes);
  }

  Panel panel(index_t p) const {
    const index_t j = p * width, rows = rows_ - j, top_rows = lesser(rows, width);
    return {top_ + p * width * width,
            strip_ + (p * rows_ + j + top_rows) * width,
            top_rows,
            rows - top_rows,
            lesser(width, round_up(s_.k - j, leaf)),
            t_ + p * width * width};
  }

  void choose_signs(index_t p) {
    const C* diagonal = strip_ + (p * rows_ + p * width) * width;
    for (index_t i = 0; i < width; ++i) {
      const bool is_negative = p * width + i < s_.k && diagonal[i * (width + 1)] < 0;
      sign_[p * width + i] = s_.is_positive && is_negative ? C(-1) : C(1);
    }
  }

  // ---- between rows in memory and strips

  /// `columns` entries of T as vectors; those that the strip lacks are zero.
  struct Row {
    VT x[row_vectors];
    [[gnu::always_inline]] Row(const T* from, index_t columns) {
      if (columns == width) {
        read(from);
      } else {
        T padded[width] = {};
        for (index_t j = 0; j < columns; ++j) padded[j] = from[j];
        read(padded);
      }
    }
    [[gnu::always_inline]] void read(const T* from) {
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; ++q)
        x[q] = *reinterpret_cast<const UnalignedVT*>(from + q * lanes);
    }
  };

  /// Strip s of A D with D = diag(2^-e_j), the largest entry of every column, and 2^e_j.
  [[gnu::noinline]] void load_strip(const Strided<const T>& a, index_t s, C* strip) {
    const T* from = a.data + s * width;
    const index_t columns = lesser(width, s_.n - s * width);
    IntT largest[row_vectors] = {};
    for (index_t i = 0; i < s_.m; ++i) {
      const Row row(from + i * a.ld, columns);
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; ++q) {
        const IntT bits = magnitude_bits(row.x[q]);
        largest[q] = bits > largest[q] ? bits : largest[q];
      }
    }
    V down[row_vectors][2];
#pragma GCC unroll 16
    for (int q = 0; q < row_vectors; ++q) {
      __builtin_memcpy(largest_ + s * width + q * lanes, &largest[q], sizeof(IntT));
      const Int e = __builtin_convertvector(exponent_of(largest[q]), Int);
      V up[2];
      split_power(-e, down[q]);
      split_power(e, up);
      for (int f = 0; f < 2; ++f) store(up_ + (2 * s + f) * width + q * lanes, up[f]);
    }
    for (index_t i = 0; i < s_.m; ++i) {
      const Row row(from + i * a.ld, columns);
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; ++q)
        store(strip + i * width + q * lanes,
              __builtin_convertvector(row.x[q], V) * down[q][0] * down[q][1]);
    }
    for (index_t i = s_.m * width; i < rows_ * width; i += lanes) store(strip + i, V{});
  }

  /// Lanes of vector q of a row whose columns are at least `first`.
  static Int lanes_from(index_t first, int q) {
    Int column;
    for (int l = 0; l < lanes; ++l) column[l] = static_cast<typename Format<C>::Int>(q * lanes + l);
    return column >= static_cast<typename Format<C>::Int>(first);
  }

  static V select(Int mask, V x) { return reinterpret_cast<V>(reinterpret_cast<Int>(x) & mask); }

  [[gnu::always_inline]] static void store_row(T* to, const VT* x, index_t columns) {
    if (columns == width) {
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; ++q) *reinterpret_cast<UnalignedVT*>(to + q * lanes) = x[q];
    } else {
      T row[width];
      __builtin_memcpy(row, x, sizeof(row));
      for (index_t j = 0; j < columns; ++j) to[j] = row[j];
    }
  }

  /// Row i of R D^-1 from a row of strip s, rounded once, zeros left of the diagonal; + 0 turns -0
  /// into +0.
  void upper_row(index_t i, index_t s, C sign, const C* from, VT* x) {
    const C* up = up_ + 2 * s * width;
    IntT fits = ~IntT{};
    for (int q = 0; q < row_vectors; ++q) {
      const V y =
          load(from + q * lanes) * sign * load(up + q * lanes) * load(up + width + q * lanes);
      x[q] = __builtin_convertvector(select(lanes_from(i - s * width, q), y), VT) + VT{};
      fits &= magnitude_bits(x[q]) < infinity_bits;
    }
    if (any(~fits)) r_fits_[s] = 0;
  }

  [[gnu::noinline]] void store_r(const Strided<T>& r, index_t s, const C* strip) {
    const index_t columns = lesser(width, s_.n - s * width);
    T* to = r.data + s * width;
    const index_t upper = lesser(s_.k, (s + 1) * width);
    r_fits_[s] = 1;
    for (index_t i = 0; i < upper; ++i) {
      VT x[row_vectors];
      upper_row(i, s, sign_[i], strip + i * width, x);
      store_row(to + i * r.ld, x, columns);
    }
    for (index_t i = upper; i < s_.r_rows; ++i)
      __builtin_memset(to + i * r.ld, 0, static_cast<std::size_t>(columns) * sizeof(T));
  }

  [[gnu::noinline]] void store_q(const Strided<T>& out, index_t s, const C* q) const {
    const index_t columns = lesser(width, s_.q_cols - s * width);
    V sign[row_vectors];
    for (int c = 0; c < row_vectors; ++c)
      sign[c] = s < panels_ ? load(sign_ + s * width + c * lanes) : V{} + 1;
    for (index_t i = 0; i < s_.m; ++i) {
      VT x[row_vectors];
#pragma GCC unroll 16
      for (int c = 0; c < row_vectors; ++c)
        x[c] = __builtin_convertvector(load(q + i * width + c * lanes) * sign[c], VT);
      store_row(out.data + i * out.ld + s * width, x, columns);
    }
  }

  /// V\R and tau of strip s. Where V was rounded, tau = 2 / v'v follows the rounded V, so that
  /// I - tau v v' is orthogonal to the last bit that T has.
  void store_reflectors(const Matrix<T>& matrix, index_t s, const C* strip) {
    const index_t columns = lesser(width, s_.n - s * width);
    r_fits_[s] = 1;
    C squares[width];
    for (C& square : squares) square = 1;
    for (index_t i = 0; i < s_.m; ++i) {
      VT x[row_vectors];
      upper_row(lesser(i, s_.k), s, 1, strip + i * width, x);
      T row[width];
      __builtin_memcpy(row, x, sizeof(x));
      for (index_t j = 0; j < lesser(columns, i - s * width); ++j) {
        row[j] = static_cast<T>(strip[i * width + j]);
        squares[j] += static_cast<C>(row[j]) * static_cast<C>(row[j]);
      }
      __builtin_memcpy(matrix.v.data + i * matrix.v.ld + s * width, row,
                       static_cast<std::size_t>(columns) * sizeof(T));
    }
    for (index_t j = 0; j < lesser(columns, s_.k - s * width); ++j) {
      const C tau = t_[(s * width + j) * width + j];
      const bool was_rounded = sizeof(T) < sizeof(C) && tau != 0;
      matrix.tau.data[s * width + j] = static_cast<T>(was_rounded ? 2 / squares[j] : tau);
    }
  }

  // ---- panels

  /// V\R of strip p in place, V's first rows in `top`, and T. The right leaf is right of the left
  /// one: C := H' C first; T(left, right) = -T(left) V_left' V_right T(right).
  [[gnu::noinline]] void factor_panel(index_t p) {
    const index_t j = p * width, rows = rows_ - j, k = lesser(width, s_.k - j);
    C* a = strip_ + (p * rows_ + j) * width;
    C* top = top_ + p * width * width;
    C* t = t_ + p * width * width;
    for (index_t i = 0; i < width * width; i += lanes) store(t + i, V{});

    factor_leaf(a, rows, lesser(leaf, k), t);
    copy_unit_lower(a, 0, lesser(rows, leaf), lesser(leaf, k), top);
    const index_t left_top = lesser(rows, leaf);
    const Panel left{top, a + left_top * width, left_top, rows - left_top, leaf, t};
    if (s_.n - j > leaf) apply<true>(left, {true, true}, a + leaf, leaf_vectors);
    for (index_t i = leaf; i < lesser(rows, width); ++i)
      for (int q = 0; q < leaf_vectors; ++q)
        store(top + i * width + q * lanes, load(a + i * width + q * lanes));
    if (k <= leaf) return;

    C* right_t = t + leaf * (width + 1);
    factor_leaf(a + leaf * (width + 1), rows - leaf, k - leaf, right_t);
    copy_unit_lower(a, leaf, lesser(rows, width), k, top);
    // Rows of the transposed products, so that all are sums of scaled rows.
    alignas(64) C w[leaf * width] = {}, x[leaf * width];
    const index_t top_rows = lesser(rows, width);
    add_products(top_rows - leaf, leaf, top + leaf * (width + 1), top + leaf * width, leaf_vectors,
                 w);
    add_products(rows - top_rows, leaf, a + top_rows * width + leaf, a + top_rows * width,
                 leaf_vectors, w);
    multiply_by_t<true>(right_t, leaf, w, leaf_vectors, x);
    for (index_t c = 0; c < leaf; ++c) {
      for (int q = 0; q < leaf_vectors; ++q) {
        V sum{};
        for (index_t l = 0; l < leaf; ++l)
          sum -= x[c * width + l] * load(t + l * width + q * lanes);
        store(t + (leaf + c) * width + q * lanes, sum);
      }
    }
  }

  /// Columns [first, 16 + first) of V's first rows: ones on the diagonal, zeros above and in the
  /// columns that the leaf lacks.
  static void copy_unit_lower(const C* a, index_t first, index_t rows, index_t k, C* top) {
    for (int q = 0; q < leaf_vectors; ++q) {
      const index_t at = first + q * lanes;
      const Int within = ~lanes_from(k - at, 0);
      for (index_t i = 0; i < rows; ++i) {
        const Int right = lanes_from(i + 1 - at, 0), below = ~lanes_from(i - at, 0);
        const V ones = select(~right & ~below, V{} + 1);
        store(top + i * width + at, select(within, select(below, load(a + i * width + at)) + ones));
      }
    }
  }

  struct Reflector {
    C beta, tau, inverse;  // v = x inverse
  };

  /// V\R of the first `columns` of 16 columns in place, applied to the others, and T transposed.
  void factor_leaf(C* a, index_t rows, index_t columns, C* t) {
    V dots[leaf_vectors];
    sum_column(a, rows, 0, dots);
    for (index_t c = 0; c < columns; ++c) {
      const Reflector h = make_reflector(a, rows, c, dots);
      C* pivot = a + c * width;
      alignas(64) C z[leaf];  // v'a_l right of column c, v'v_l left of it
      V coefficients[leaf_vectors];
      Int keep[leaf_vectors];
      for (int q = 0; q < leaf_vectors; ++q) {
        const V y = load(pivot + q * lanes), dot = y + h.inverse * dots[q];
        store(z + q * lanes, dot);
        const Int right = lanes_from(c + 1, q);
        const V w = select(right, h.tau * dot);
        keep[q] = right | ~lanes_from(c, q);
        coefficients[q] = select(keep[q], -h.inverse * w) + select(~keep[q], V{} + h.inverse);
        store(pivot + q * lanes, select(keep[q], y - w) + select(~keep[q], V{} + h.beta));
      }
      if (c + 1 < columns) {
        sweep<true>(a, rows, c, coefficients, keep, dots);
      } else {
        sweep<false>(a, rows, c, coefficients, keep, dots);
      }
      form_t_column(c, h.tau, z, t);
    }
  }

  /// T(:, c) = -tau T z, T(c, c) = tau; the later columns of T are zero.
  static void form_t_column(index_t c, C tau, const C* z, C* t) {
    for (int q = 0; q < leaf_vectors; ++q) {
      V sum[2] = {};
#pragma GCC unroll 16
      for (index_t l = 0; l < leaf; ++l) sum[l & 1] += z[l] * load(t + l * width + q * lanes);
      store(t + c * width + q * lanes, -tau * (sum[0] + sum[1]));
    }
    t[c * width + c] = tau;
  }

  /// x'a_l with x = column c below row c.
  static void sum_column(const C* a, index_t rows, index_t c, V* dots) {
    for (int q = 0; q < leaf_vectors; ++q) dots[q] = V{};
    for (index_t first = c + 1; first < rows; first += sum_rows) {
      V part[leaf_vectors] = {};
      for (index_t i = first; i < lesser(first + sum_rows, rows); ++i)
        for (int q = 0; q < leaf_vectors; ++q)
          part[q] += a[i * width + c] * load(a + i * width + q * lanes);
      for (int q = 0; q < leaf_vectors; ++q) dots[q] += part[q];
    }
  }

  /// H (alpha, x) = (beta, 0), x'x = dots[c] (LAPACK larfg). A column that is too small to be
  /// squared is raised by a power of two first: its products with other v make T.
  static Reflector make_reflector(C* a, index_t rows, index_t c, V* dots) {
    using F = Format<C>;
    C lower = 1;
    if (entry(dots, c) < F::small_squares) {
      C largest = 0;
      for (index_t i = c + 1; i < rows; ++i) {
        const C x = a[i * width + c] < 0 ? -a[i * width + c] : a[i * width + c];
        largest = x > largest ? x : largest;
      }
      const C alpha = a[c * width + c];
      if (largest == 0) return {alpha, 0, 0};  // H = I
      if (alpha * alpha + entry(dots, c) < F::small_squares) {
        lower = F::lower;
        for (index_t i = c; i < rows; ++i) a[i * width + c] *= F::raise;
        sum_column(a, rows, c, dots);
      }
    }
    const C alpha = a[c * width + c], tail = entry(dots, c);
    const C norm = square_root(alpha * alpha + tail), beta = alpha >= 0 ? -norm : norm;
    const C inverse = 1 / (alpha - beta);
    // 2 / v'v for the very `inverse` that makes v: LAPACK's (beta - alpha) / beta is the same
    // number, but rounds on its own, and H is then farther from orthogonal.
    return {beta * lower, 2 / (1 + inverse * tail * inverse), inverse};
  }

  static C entry(const V* x, index_t c) { return reinterpret_cast<const StoredC*>(x)[c]; }

  /// One pass below row c: a_l -= v w_l right of column c, column c := v, and, where there is a
  /// next reflector, dots := x'a_l for x = column c + 1 below row c + 1.
  template <bool has_next>
  [[gnu::noinline]] static void sweep(C* a, index_t rows, index_t c, const V* coefficients,
                                      const Int* keep, V* dots) {
    // Sums in flight, to hide the latency of an addition.
    constexpr int flight = leaf_vectors < 4 ? 4 / leaf_vectors : 1;
    V w[leaf_vectors];
    Int kept[leaf_vectors];
    for (int q = 0; q < leaf_vectors; ++q) {
      w[q] = coefficients[q];
      kept[q] = keep[q];
    }
    const auto update = [&](C* row, V* y) {
      const C x = row[c];
#pragma GCC unroll 16
      for (int q = 0; q < leaf_vectors; ++q) {
        y[q] = select(kept[q], load(row + q * lanes)) + x * w[q];
        store(row + q * lanes, y[q]);
      }
    };
    V y[leaf_vectors];
    index_t i = c + 1;
    if constexpr (!has_next) {
      for (; i < rows; ++i) update(a + i * width, y);
      return;
    }
    if (i < rows) update(a + i++ * width, y);
    for (int q = 0; q < leaf_vectors; ++q) dots[q] = V{};
    for (index_t end = i; i < rows;) {
      end = lesser(end + sum_rows, rows);
      V part[flight][leaf_vectors] = {};
      const auto step = [&](int f) {
        C* row = a + i++ * width;
        update(row, y);
        const C next = row[c + 1];
#pragma GCC unroll 16
        for (int q = 0; q < leaf_vectors; ++q) part[f][q] += next * y[q];
      };
      while (i + flight <= end) {
#pragma GCC unroll 4
        for (int f = 0; f < flight; ++f) step(f);
      }
      while (i < end) step(0);
#pragma GCC unroll 4
      for (int f = 0; f < flight; ++f)
#pragma GCC unroll 16
        for (int q = 0; q < leaf_vectors; ++q) dots[q] += part[f][q];
    }
  }

  // ---- products

  /// Which rows of C have entries other than zero, as the products V'C go.
  struct Rows {
    bool in_top, in_rest;
  };

  /// C := (I - V T V') C, or with T', for `vectors` vectors of columns.
  template <bool is_transposed>
  [[gnu::noinline]] static void apply(const Panel& v, Rows filled, C* c, int vectors) {
    alignas(64) C w[width * width], tw[width * width];
    C* rest = c + v.top_rows * width;
    for (index_t i = 0; i < v.count * width; i += lanes) store(w + i, V{});
    if (filled.in_top) add_products(v.top_rows, v.count, v.top, c, vectors, w);
    if (filled.in_rest) add_products(v.rest_rows, v.count, v.rest, rest, vectors, w);
    multiply_by_t<is_transposed>(v.t, v.count, w, vectors, tw);
    subtract_products(v.top_rows, v.count, v.top, tw, vectors, c);
    subtract_products(v.rest_rows, v.count, v.rest, tw, vectors, rest);
  }

  /// body(q, N) for tiles of N = 2 vectors of columns, and a last one of 1.
  template <class Body>
  [[gnu::always_inline]] static void for_tiles(int vectors, Body body) {
    int q = 0;
    for (; q + 2 <= vectors; q += 2) body.template operator()<2>(q * lanes);
    if (q < vectors) body.template operator()<1>(q * lanes);
  }

  /// W += V'C.
  static void add_products(index_t rows, index_t reflectors, const C* v, const C* c, int vectors,
                           C* w) {
    for (index_t i = 0; i < rows; i += sum_rows) {
      const index_t part = lesser(sum_rows, rows - i);
      for_tiles(vectors, [&]<int N>(int q) {
        for (index_t p = 0; p < reflectors; p += tile_reflectors)
          add_tile<N>(part, v + i * width + p, c + i * width + q, w + p * width + q);
      });
    }
  }

  template <int N>
  [[gnu::always_inline]] static void add_tile(index_t rows, const C* v, const C* c, C* w) {
    V sum[tile_reflectors][N] = {};
    for (index_t i = 0; i < rows; ++i) {
      V x[N];
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) x[q] = load(c + i * width + q * lanes);
#pragma GCC unroll 8
      for (int p = 0; p < tile_reflectors; ++p)
#pragma GCC unroll 2
        for (int q = 0; q < N; ++q) sum[p][q] += v[i * width + p] * x[q];
    }
#pragma GCC unroll 8
    for (int p = 0; p < tile_reflectors; ++p)
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) {
        C* at = w + p * width + q * lanes;
        store(at, load(at) + sum[p][q]);
      }
  }

  /// C -= V W; rows is a multiple of tile_rows.
  static void subtract_products(index_t rows, index_t reflectors, const C* v, const C* w,
                                int vectors, C* c) {
    for (index_t i = 0; i < rows; i += tile_reflectors) {
      for_tiles(vectors, [&]<int N>(int q) {
        subtract_tile<N>(reflectors, v + i * width, w + q, c + i * width + q);
      });
    }
  }

  template <int N>
  [[gnu::always_inline]] static void subtract_tile(index_t reflectors, const C* v, const C* w,
                                                   C* c) {
    V x[tile_reflectors][N];
#pragma GCC unroll 8
    for (int i = 0; i < tile_reflectors; ++i)
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) x[i][q] = load(c + i * width + q * lanes);
    for (index_t p = 0; p < reflectors; ++p) {
      V y[N];
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) y[q] = load(w + p * width + q * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < tile_reflectors; ++i)
#pragma GCC unroll 2
        for (int q = 0; q < N; ++q) x[i][q] -= v[i * width + p] * y[q];
    }
#pragma GCC unroll 8
    for (int i = 0; i < tile_reflectors; ++i)
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) store(c + i * width + q * lanes, x[i][q]);
  }

  /// Y := T W or T'W; T is upper triangular and given transposed.
  template <bool is_transposed>
  static void multiply_by_t(const C* t, index_t reflectors, const C* w, int vectors, C* y) {
    constexpr index_t across = is_transposed ? 1 : width, down = is_transposed ? width : 1;
    for_tiles(vectors, [&]<int N>(int q) {
      for (index_t i = 0; i < reflectors; i += tile_reflectors) {
        const index_t first = is_transposed ? 0 : i;
        const index_t end = is_transposed ? i + tile_reflectors : reflectors;
        V sum[tile_reflectors][N] = {};
        for (index_t p = first; p < end; ++p) {
          V x[N];
#pragma GCC unroll 2
          for (int c = 0; c < N; ++c) x[c] = load(w + p * width + q + c * lanes);
#pragma GCC unroll 8
          for (int r = 0; r < tile_reflectors; ++r)
#pragma GCC unroll 2
            for (int c = 0; c < N; ++c) sum[r][c] += t[(i + r) * down + p * across] * x[c];
        }
#pragma GCC unroll 8
        for (int r = 0; r < tile_reflectors; ++r)
#pragma GCC unroll 2
          for (int c = 0; c < N; ++c) store(y + (i + r) * width + q + c * lanes, sum[r][c]);
      }
    });
  }

  const Shape s_;
  const index_t rows_;                // m with the padding
  const index_t strips_, panels_;     // of A; of them with reflectors
  std::size_t bytes_ = 0;             // of workspace
  C* strip_;                          // V\R, rows_ x 32 for every panel
  C* own_strip_;                      // rows_ x 32 for every worker
  C* top_;                            // V's first rows, 32 x 32 for every panel
  C* t_;                              // T transposed, 32 x 32 for every panel
  C* sign_;                           // of R_ii
  C* up_;                             // 2^e_j in two factors, 2 x 32 for every strip
  typename Format<T>::Int* largest_;  // |a_ij| of a column, as bits
  int* r_fits_;                       // of every strip
};

template <class T, class C>
constexpr Routine<T> routine{Factorization<T, C>::workspace_bytes, Factorization<T, C>::factor,
                             Factorization<T, C>::outcome};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET),
                                                   routine<float, float>, routine<float, double>,
                                                   routine<double, double>};

}  // namespace qrtool::blocked
