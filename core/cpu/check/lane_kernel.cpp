// SPDX-License-Identifier: Apache-2.0
// lane_kernel.cpp: Q'Q and A - QR of as many small matrices as a vector has lanes, compiled once
// for every instruction set. Every step is a vector instruction without a shuffle, and no matrix
// waits for sums across a vector.
//
//     A - QR     tiles of 4 x 4 entries; sums of 8 products are subtracted one after another
//     Q'Q        tiles of 4 x 4 entries; sums of gram_run products are added pairwise
#include "core/cpu/check/lane_kernel.hpp"

#include "core/cpu/batched/tiles.hpp"
#include "core/simd/simd.hpp"
#include "core/simd/widened.hpp"

namespace qrtool::check_lanes {
namespace {

constexpr int lanes = vector_bytes / static_cast<int>(sizeof(double));
static_assert(lanes <= most_lanes);
using V = VectorOf<double, lanes>::type;
using Int = VectorOf<std::int64_t, lanes>::type;

/// Rows and columns are padded with zeros to multiples of this number.
constexpr int unit = 4;
/// The products in a sum of A - QR.
constexpr index_t residual_run = 8;
/// The sums of runs of Q'Q are added pairwise; the most are 2^most_levels.
constexpr int most_levels = 10;

/// The number of rows and columns of a tile, whose sums take half of the registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_rows = 4;
#else
constexpr int tile_rows = 2;
#endif
constexpr int columns = 4;

constexpr index_t padded(index_t size) { return (size + unit - 1) / unit * unit; }
constexpr index_t lesser(index_t x, index_t y) { return x < y ? x : y; }

V magnitude(V x) {
  constexpr std::int64_t sign = std::int64_t{1} << 62 << 1;
  return reinterpret_cast<V>(reinterpret_cast<Int>(x) & ~(Int{} + sign));
}

template <class T>
class Measurement {
  using VT = typename VectorOf<T, lanes>::type;
  using InMemory = batched::Tiles<T, lanes>;

 public:
  Measurement(const Shape& shape, V* workspace)
      : s_(shape),
        n_(padded(shape.n)),
        k_(padded(shape.q_cols)),
        rows_(padded(shape.m)),
        a_(workspace),
        q_(a_ + rows_ * n_),
        r_(q_ + rows_ * k_) {}

  static std::size_t workspace_bytes(const Shape& s) {
    const index_t n = padded(s.n), k = padded(s.q_cols), rows = padded(s.m);
    return static_cast<std::size_t>(rows * n + rows * k + k * n) * sizeof(V);
  }

  void measure(const Pack<T>& pack, Norms& norms) {
    load(pack);
    keep(norms.a, root(squares_of_a_));
    keep(norms.lower, root(lower_));
    keep(norms.largest, largest_);
    keep(norms.least, least_);
    keep(norms.residual, root(residual()));
    keep(norms.orthogonality, root(orthogonality()));
  }

 private:
  static void keep(double* to, V values) {
    for (int l = 0; l < lanes; ++l) to[l] = values[l];
  }
  static V root(V x) {
    V y;
    for (int l = 0; l < lanes; ++l) y[l] = square_root(x[l]);
    return y;
  }

  /// x := the entries of `lanes` matrices, in float64 and times their factors.
  [[gnu::noinline]] void load(const Pack<T>& pack) {
    V half{}, rest{};
    for (int l = 0; l < lanes; ++l) {
      half[l] = pack.half[l < pack.count ? l : 0];
      rest[l] = pack.rest[l < pack.count ? l : 0];
    }
    const auto scaled = [&](const VT& x) {
      const V wide = widened<V>(x) * half;
      // 2^-scale of float32 is a normal number in float64.
      if constexpr (sizeof(T) == 4) return wide;
      return wide * rest;
    };
    pad(a_, s_.m, s_.n, n_, rows_);
    pad(q_, s_.m, s_.q_cols, k_, rows_);
    pad(r_, s_.q_cols, s_.n, n_, k_);
    V even{}, odd{};
    InMemory::read(pack.a, pack.count, s_.m, s_.n, [&]<int N>(const VT* x, index_t i, index_t j) {
#pragma GCC unroll 8
      for (int e = 0; e < N; ++e) {
        const V y = scaled(x[e]);
        a_[i * n_ + j + e] = y;
        (e % 2 == 0 ? even : odd) += y * y;
      }
    });
    squares_of_a_ = even + odd;
    InMemory::read(pack.q, pack.count, s_.m, s_.q_cols,
                   [&]<int N>(const VT* x, index_t i, index_t j) {
#pragma GCC unroll 8
                     for (int e = 0; e < N; ++e) q_[i * k_ + j + e] = widened<V>(x[e]);
                   });
    InMemory::read(pack.r, pack.count, s_.q_cols, s_.n,
                   [&]<int N>(const VT* x, index_t i, index_t j) {
#pragma GCC unroll 8
                     for (int e = 0; e < N; ++e) r_[i * n_ + j + e] = scaled(x[e]);
                   });
    look_at_r();
  }

  /// Zeros in the columns and rows of `to` that a matrix does not have.
  static void pad(V* to, index_t rows, index_t cols, index_t ld, index_t all_rows) {
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = cols; j < ld; ++j) to[i * ld + j] = V{};
    for (index_t e = rows * ld; e < all_rows * ld; ++e) to[e] = V{};
  }

  void look_at_r() {
    const index_t k = lesser(s_.m, s_.n);
    lower_ = V{};
    largest_ = V{};
    for (index_t i = 0; i < s_.q_cols; ++i)
      for (index_t j = 0; j < lesser(i, s_.n); ++j) lower_ += r_[i * n_ + j] * r_[i * n_ + j];
    for (index_t i = 0; i < k; ++i) {
      const V x = magnitude(r_[i * n_ + i]);
      largest_ = x > largest_ ? x : largest_;
      least_ = i == 0 || x < least_ ? x : least_;
    }
    is_upper_ = !any(lower_ != 0);
  }

  // ---- A - QR

  /// Returns ||A - QR||^2.
  [[gnu::noinline]] V residual() {
    V sums[2] = {};
    for (index_t i = 0; i < s_.m; i += tile_rows)
      for (index_t j = 0; j < n_; j += columns) add_residual_tile(i, j, sums);
    return sums[0] + sums[1];
  }

  [[gnu::always_inline]] void add_residual_tile(index_t i, index_t j, V* sums) {
    V x[tile_rows][columns];
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) x[r][c] = a_[(i + r) * n_ + j + c];
    const index_t end = is_upper_ ? lesser(k_, j + columns) : k_;
    // In float32 the errors of sums in float64 do not matter.
    if constexpr (sizeof(T) == 4) {
      add_products<-1>(i, j, 0, end, x);
    } else {
      for (index_t first = 0; first < end; first += residual_run) {
        V sum[tile_rows][columns] = {};
        add_products<1>(i, j, first, lesser(first + residual_run, end), sum);
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
          for (int c = 0; c < columns; ++c) x[r][c] -= sum[r][c];
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) sums[c % 2] += x[r][c] * x[r][c];
  }

  /// x += sign Q R of the columns [first, end) of Q, for a tile. Both are multiples of four.
  template <int sign>
  [[gnu::always_inline]] void add_products(index_t i, index_t j, index_t first, index_t end,
                                           V (&x)[tile_rows][columns]) const {
    const V *y = r_ + first * n_ + j, *z[tile_rows];
    for (int r = 0; r < tile_rows; ++r) z[r] = q_ + (i + r) * k_ + first;
    for (index_t p = first; p < end; p += unit) {
#pragma GCC unroll 4
      for (int e = 0; e < unit; ++e, y += n_) {
        V row[columns];
        load_row(y, row);
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
          for (int c = 0; c < columns; ++c) {
            const V product = *z[r] * row[c];
            sign > 0 ? x[r][c] += product : x[r][c] -= product;
          }
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r) ++z[r];
      }
    }
  }

  // ---- Q'Q

  /// Returns ||I - Q'Q||^2. Columns beyond the last of Q are zero and need no mask right of the
  /// diagonal.
  template <int Run>
  [[gnu::noinline]] V orthogonality_of_runs() const {
    V right[2] = {}, diagonal{};
    V tile[tile_rows][columns];
    for (index_t p = 0; p < s_.q_cols; p += tile_rows) {
      index_t c = p / columns * columns;
      sum_tile<Run>(p, c, tile);
      for (int r = 0; r < tile_rows && p + r < s_.q_cols; ++r) {
        const index_t on = p + r - c;
        const V x = tile[r][on] - 1;
        diagonal += x * x;
        for (index_t e = on + 1; e < columns; ++e) right[0] += tile[r][e] * tile[r][e];
      }
      for (c += columns; c < s_.q_cols; c += columns) {
        sum_tile<Run>(p, c, tile);
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
          for (int e = 0; e < columns; ++e) right[e % 2] += tile[r][e] * tile[r][e];
      }
    }
    return 2 * (right[0] + right[1]) + diagonal;
  }
  V orthogonality() const {
    return s_.gram_run <= 2    ? orthogonality_of_runs<2>()
           : s_.gram_run <= 4  ? orthogonality_of_runs<4>()
           : s_.gram_run <= 8  ? orthogonality_of_runs<8>()
           : s_.gram_run <= 16 ? orthogonality_of_runs<16>()
                               : orthogonality_of_runs<32>();
  }

  /// Sums a tile of Q'Q. The sums of two short runs need the registers of a tile each, so that half
  /// of the columns are summed at a time.
  template <int Run>
  [[gnu::always_inline]] void sum_tile(index_t p, index_t c, V (&tile)[tile_rows][columns]) const {
    constexpr int at_once = Run < unit ? columns / 2 : columns;
#pragma GCC unroll 2
    for (int e = 0; e < columns; e += at_once) {
      V sum[tile_rows][at_once];
      sum_runs<Run>(p, c + e, sum);
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
        for (int i = 0; i < at_once; ++i) tile[r][e + i] = sum[r][i];
    }
  }

  /// Adds the sums of runs of rows in pairs, and pairs in pairs, as digits of a binary counter are
  /// carried.
  template <int Run, int Columns>
  [[gnu::noinline]] void sum_runs(index_t p, index_t c, V (&to)[tile_rows][Columns]) const {
    constexpr index_t each = Run < unit ? unit : Run;
    V waiting[most_levels][tile_rows][Columns];
    const V *z = q_ + p, *y = q_ + c;
    for (index_t number = 0, left = rows_;; ++number, left -= each) {
      V sum[tile_rows][Columns] = {};
      const index_t count = lesser(each, left);
      for (index_t i = 0; i < count; i += unit) {
        add_rows < Run<unit ? Run : unit>(z, y, sum);
        if constexpr (Run < unit) {
          V second[tile_rows][Columns] = {};
          add_rows<unit - Run>(z, y, second);
          add<Columns>(sum, second);
        }
      }
      const bool is_last = left <= each;
      int level = 0;
      for (index_t digits = number; is_last ? digits != 0 : digits % 2 != 0; digits /= 2, ++level)
        if (digits % 2 != 0) add<Columns>(sum, waiting[level]);
      V(&kept)[tile_rows][Columns] = is_last ? to : waiting[level];
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
        for (int e = 0; e < Columns; ++e) kept[r][e] = sum[r][e];
      if (is_last) return;
    }
  }

  template <int Columns>
  [[gnu::always_inline]] static void add(V (&sum)[tile_rows][Columns],
                                         const V (&other)[tile_rows][Columns]) {
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
      for (int e = 0; e < Columns; ++e) sum[r][e] += other[r][e];
  }

  /// sum += the products of Rows rows of Q, from z and y on, which then are at the next row.
  template <int Rows, int Columns>
  [[gnu::always_inline]] void add_rows(const V*& z, const V*& y,
                                       V (&sum)[tile_rows][Columns]) const {
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      V row[Columns];
      load_row(y, row);
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
        for (int e = 0; e < Columns; ++e) sum[r][e] += z[r] * row[e];
      z += k_;
      y += k_;
    }
  }

  /// Loads entries that several products share.
  template <int Columns>
  [[gnu::always_inline]] static void load_row(const V* from, V (&to)[Columns]) {
#pragma GCC unroll 4
    for (int e = 0; e < Columns; ++e) {
      to[e] = from[e];
      keep_in_register(to[e]);
    }
  }

  const Shape s_;
  const index_t n_, k_, rows_;  // padded
  V *a_, *q_, *r_;
  V squares_of_a_, lower_, largest_, least_;
  bool is_upper_ = true;
};

template <class T>
void measure(const Shape& shape, const Pack<T>& pack, std::byte* workspace, Norms& norms) {
  Measurement<T>(shape, reinterpret_cast<V*>(workspace)).measure(pack, norms);
}

}  // namespace

#define QRTOOL_CHECK_LANES(target) QRTOOL_JOIN(target, _check_lanes)

extern const Kernels QRTOOL_CHECK_LANES(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), lanes,
                                                       Measurement<double>::workspace_bytes,
                                                       measure<float>, measure<double>};

}  // namespace qrtool::check_lanes
