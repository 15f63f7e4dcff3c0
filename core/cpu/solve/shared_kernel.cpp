// SPDX-License-Identifier: Apache-2.0
// shared_kernel.cpp: many right sides of one matrix, one right side per SIMD lane and several
// vectors at a time, compiled once for every instruction set. Everything is computed in float64.
//
//   b -> tile (m rows of `vectors` vectors), z = Q'b, x = R^-1 z, r = b - A x, g = A'r
//
// Each product takes four columns of A or Q at a time, so that a tile is read once for 16 sums in
// registers. The backward error is bounded as in core/solve/backward_error.hpp.
#include "core/cpu/solve/shared_kernel.hpp"

#include "core/cpu/batched/tiles.hpp"
#include "core/cpu/solve/arithmetic.hpp"

namespace qrtool::shared {
namespace {

/// The columns of A that are taken at a time.
constexpr int step = 4;

template <class T>
class RightSides : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::broadcast, Base::is_beyond, Base::lanes, Base::least_solution, Base::most_exponent,
      Base::power, Base::power_inverse, Base::size_of, Base::square_roots;
  using typename Base::Int, typename Base::V, typename Base::VT;
  using UnalignedVT = typename VectorOf<T, lanes>::unaligned;
  using InMemory = batched::Tiles<T, lanes>;

  /// The number of vectors of right sides that are solved side by side: with AVX-512 four, whose 4
  /// x 4 sums take half of the registers.
  static constexpr int vectors = lanes >= 8 ? 4 : 2;
  static constexpr index_t group = vectors * lanes;
  static_assert(most_right_sides % group == 0);

 public:
  static std::size_t workspace_bytes(const Matrix& matrix) {
    return static_cast<std::size_t>((matrix.m + 4 * matrix.n) * vectors) * sizeof(V);
  }

  static void solve(const Matrix& matrix, const Tile<T>& tile, std::byte* workspace) {
    for (index_t first = 0; first < tile.count; first += group) {
      const index_t left = tile.count - first;
      RightSides(matrix, tile, first, left < group ? left : group, workspace).solve();
    }
  }

 private:
  RightSides(const Matrix& matrix, const Tile<T>& tile, index_t first, index_t count,
             std::byte* workspace)
      : a_(matrix), tile_(tile), first_(first), count_(count) {
    b_ = reinterpret_cast<V*>(workspace);
    x_ = b_ + a_.m * vectors;
    g_ = x_ + a_.n * vectors;
    stored_ = g_ + a_.n * vectors;
    y_ = stored_ + a_.n * vectors;
  }

  /// Returns how many right sides vector v has.
  index_t lanes_of(int v) const {
    const index_t left = count_ - v * lanes;
    return left < 0 ? 0 : left < lanes ? left : index_t{lanes};
  }

  void solve() {
    load();
    choose_scales();
    if (!a_.is_given) {
      for (index_t j = 0; j < a_.n; j += step) multiply_transposed(a_.q, j, x_);
      solve_upper(x_);
    } else {
      take_x();
    }
    round_x();
    for (index_t j = 0; j < a_.n; j += step) subtract_product(j);
    add_squares();
    for (index_t j = 0; j < a_.n; j += step) multiply_transposed(a_.a, j, g_);
    judge();
    if (!a_.is_given) store_x();
  }

  // ---- right sides

  void load() {
    for (int v = 0; v < vectors; ++v) largest_[v] = V{};
    for (index_t e = a_.data_rows * vectors; e < a_.m * vectors; ++e) b_[e] = V{};
    for (int v = 0; v < vectors; ++v) {
      const index_t count = lanes_of(v);
      if (count == 0) {
        for (index_t i = 0; i < a_.data_rows; ++i) b_[i * vectors + v] = V{};
      } else if (tile_.has_rows) {
        const T* from = tile_.b + (first_ + v * lanes) * tile_.b_ld;
        InMemory::read({from, a_.data_rows, tile_.b_ld}, count, 1, a_.data_rows,
                       [&]<int N>(const VT* x, index_t, index_t i) {
#pragma GCC unroll 16
                         for (int e = 0; e < N; ++e) keep(x[e], i + e, v);
                       });
      } else {
        for (index_t i = 0; i < a_.data_rows; ++i)
          keep(vector_at(tile_.b + i * tile_.b_ld + first_ + v * lanes, count), i, v);
      }
    }
  }
  static VT vector_at(const T* from, index_t count) {
    if (count == lanes) return *reinterpret_cast<const UnalignedVT*>(from);
    VT x{};
    for (index_t l = 0; l < count; ++l) x[l] = from[l];
    return x;
  }
  static void put(VT x, T* to, index_t count) {
    if (count == lanes) {
      *reinterpret_cast<UnalignedVT*>(to) = x;
    } else {
      for (index_t l = 0; l < count; ++l) to[l] = x[l];
    }
  }
  [[gnu::always_inline]] void keep(VT stored, index_t i, int v) {
    V x = __builtin_convertvector(stored, V);
    if (a_.row_factors != nullptr) {
      // A row of weight 0 counts nothing, whatever it holds.
      x = a_.row_factors[i] == 0 ? V{} : x * a_.row_factors[i];
    }
    b_[i * vectors + v] = x;
    const V size = size_of(x);
    // NaN stays in largest_, since the comparison is false.
    largest_[v] = size <= largest_[v] ? largest_[v] : size;
    not_finite_[v] |= ~(size < __builtin_inf());
  }

  /// b := b 2^-e; e brings the largest entry of each right side to [1/2, 1).
  void choose_scales() {
    for (int v = 0; v < vectors; ++v) {
      const V largest = not_finite_[v] ? V{} : largest_[v];
      const Int bits = reinterpret_cast<Int>(largest);
      exponent_[v] =
          largest == 0 ? Int{} : (bits >> Format<double>::mantissa) - (Format<double>::bias - 1);
      needs_care_[v] = is_beyond(exponent_[v], most_exponent);
      down_[v] = power(-exponent_[v]);
    }
    for (index_t i = 0; i < a_.data_rows; ++i)
      for (int v = 0; v < vectors; ++v) {
        const V x = b_[i * vectors + v] * down_[v];
        b_[i * vectors + v] = not_finite_[v] ? V{} : x;
        b_squares_[v] += b_[i * vectors + v] * b_[i * vectors + v];
      }
  }

  // ---- products

  /// to_j := the columns j, .., j + 3 of A or Q, transposed, times the tile.
  [[gnu::noinline]] void multiply_transposed(const double* a, index_t j, V* to) const {
    const index_t columns = a_.n - j < step ? a_.n - j : index_t{step};
    V sums[step][vectors] = {};
    if (columns == step) {
      for (index_t i = 0; i < a_.m; ++i) add_row<step>(a + i * a_.n + j, b_ + i * vectors, sums);
    } else {
      for (index_t i = 0; i < a_.m; ++i)
        for (index_t q = 0; q < columns; ++q)
          add_row<1>(a + i * a_.n + j + q, b_ + i * vectors, sums + q);
    }
    for (index_t q = 0; q < columns; ++q)
      for (int v = 0; v < vectors; ++v) to[(j + q) * vectors + v] = sums[q][v];
  }
  template <int columns>
  [[gnu::always_inline]] static void add_row(const double* a, const V* b, V (*sums)[vectors]) {
#pragma GCC unroll 4
    for (int q = 0; q < columns; ++q)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[q][v] += a[q] * b[v];
  }

  /// The tile := tile - (columns j, .., j + 3 of A) x.
  [[gnu::noinline]] void subtract_product(index_t j) {
    const index_t columns = a_.n - j < step ? a_.n - j : index_t{step};
    V x[step][vectors] = {};
    for (index_t q = 0; q < columns; ++q)
      for (int v = 0; v < vectors; ++v) x[q][v] = y_[(j + q) * vectors + v];
    for (index_t i = 0; i < a_.m; ++i) {
      double a[step] = {};
      if (columns == step) {
        __builtin_memcpy(a, a_.a + i * a_.n + j, sizeof(a));
      } else {
        for (index_t q = 0; q < columns; ++q) a[q] = a_.a[i * a_.n + j + q];
      }
      V* b = b_ + i * vectors;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        V sum = b[v];
#pragma GCC unroll 4
        for (int q = 0; q < step; ++q) sum -= a[q] * x[q][v];
        b[v] = sum;
      }
    }
  }

  void solve_upper(V* x) const {
    for (index_t i = a_.n - 1; i >= 0; --i) {
      const double* r = a_.r + i * a_.n;
      const double inverse = 1 / r[i];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        V sum = x[i * vectors + v];
        for (index_t j = i + 1; j < a_.n; ++j) sum -= r[j] * x[j * vectors + v];
        x[i * vectors + v] = sum * inverse;
      }
    }
  }
  void solve_upper_transposed(V* x) const {
    for (index_t i = 0; i < a_.n; ++i) {
      const double* r = a_.r + i * a_.n;
      const double inverse = 1 / r[i];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const V xi = x[i * vectors + v] *= inverse;
        for (index_t j = i + 1; j < a_.n; ++j) x[j * vectors + v] -= r[j] * xi;
      }
    }
  }

  // ---- solutions

  /// Rounds x as it will be stored. The scaled solution solves A D^-1 x = b 2^-e, and D^-1 x 2^e is
  /// stored.
  void round_x() {
    for (int v = 0; v < vectors; ++v) {
      const V power_of_b = power(exponent_[v]);
      V largest{}, squares{};
      Int is_beyond_type{};
      for (index_t i = 0; i < a_.n; ++i) {
        const V of_column = broadcast(a_.powers[i]);
        const V up = power_of_b * of_column, back = down_[v] * power_inverse(of_column);
        V& stored = stored_[i * vectors + v];
        if (!a_.is_given) {
          const VT rounded = __builtin_convertvector(x_[i * vectors + v] * up, VT);
          stored = __builtin_convertvector(rounded, V);
        }
        const V size = size_of(stored);
        largest = size <= largest ? largest : size;
        is_beyond_type |= ~(size < __builtin_inf());
        const V x = stored * back;
        y_[i * vectors + v] = x;
        squares += x * x;
      }
      needs_care_[v] |= is_beyond_type | ((largest < least_solution) & (largest > 0));
      x_norm_[v] = square_roots(squares);
    }
  }

  void take_x() {
    for (int v = 0; v < vectors; ++v)
      for (index_t i = 0; i < a_.n; ++i) {
        V x{};
        for (index_t l = 0; l < lanes_of(v); ++l) x[l] = tile_.x[place(i, v, l)];
        stored_[i * vectors + v] = x;
      }
  }
  index_t place(index_t i, int v, index_t lane) const {
    const index_t s = first_ + v * lanes + lane;
    return tile_.has_rows ? s * tile_.x_ld + i : i * tile_.x_ld + s;
  }

  /// Sums of the data rows, and then of all rows. With both in one loop, compilers gave some of the
  /// vectors a fused multiply-add and others not.
  void add_squares() {
    add_squares(0, a_.data_rows);
    for (int v = 0; v < vectors; ++v) data_squares_[v] = r_squares_[v];
    add_squares(a_.data_rows, a_.m);
  }
  void add_squares(index_t first, index_t end) {
    for (index_t i = first; i < end; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) r_squares_[v] += b_[i * vectors + v] * b_[i * vectors + v];
  }

  void judge() {
    Int is_any{};
    V errors[vectors], e[vectors], r[vectors];
    Int is_exact[vectors], is_doubtful[vectors];
    for (int v = 0; v < vectors; ++v) {
      V squares{};
      for (index_t j = 0; j < a_.n; ++j) squares += g_[j * vectors + v] * g_[j * vectors + v];
      const V g = square_roots(squares), b = square_roots(b_squares_[v]);
      const V ax = a_.norm * x_norm_[v];
      r[v] = square_roots(r_squares_[v]);
      e[v] = r[v] / square_roots(ax * ax + b * b);
      const V of_g = g / (a_.norm * r[v]);
      errors[v] = of_g < e[v] ? of_g : e[v];
      is_exact[v] = (r[v] == 0) | (g == 0);
      is_doubtful[v] = ~(errors[v] <= a_.bar / 2) & ~is_exact[v] & ~not_finite_[v];
      is_any |= is_doubtful[v] & ~needs_care_[v];
    }
    if (any(is_any)) {
      for (index_t i = 0; i < a_.n * vectors; ++i) x_[i] = g_[i];
      solve_upper_transposed(x_);
      for (int v = 0; v < vectors; ++v) {
        V squares{};
        for (index_t i = 0; i < a_.n; ++i) squares += x_[i * vectors + v] * x_[i * vectors + v];
        const V bound = e[v] * square_roots(squares) / r[v];
        errors[v] = is_doubtful[v] & (bound < errors[v]) ? bound : errors[v];
      }
    }
    for (int v = 0; v < vectors; ++v) {
      const V error = is_exact[v] ? V{} : errors[v];
      const Int care = needs_care_[v] | ~(error <= a_.bar / 2);
      const V residual = square_roots(data_squares_[v]) * power(exponent_[v]);
      residual_[v] = r[v];
      for (index_t l = 0; l < lanes_of(v); ++l) {
        const index_t s = first_ + v * lanes + l;
        tile_.kinds[s] = not_finite_[v][l] ? Kind::refused
                         : care[l]         ? Kind::needs_care
                                           : Kind::solved;
        tile_.errors[s] = error[l];
        tile_.residual_norms[s] = residual[l];
      }
    }
  }

  void store_x() {
    for (int v = 0; v < vectors; ++v) {
      store(tile_.x, v, [&](index_t i) { return stored_[i * vectors + v]; });
      if (tile_.se == nullptr || a_.row_norms == nullptr) continue;
      const V sigma = a_.freedom > 0 ? residual_[v] / square_root(a_.freedom) * power(exponent_[v])
                                     : broadcast(__builtin_nan(""));
      store(tile_.se, v, [&](index_t i) { return sigma * (a_.row_norms[i] * a_.powers[i]); });
    }
  }
  template <class Value>
  void store(T* to, int v, Value value) const {
    const index_t count = lanes_of(v), s = first_ + v * lanes;
    if (count == 0) return;
    if (tile_.has_rows) {
      InMemory::write({to + s * tile_.x_ld, a_.n, tile_.x_ld}, count, 1, a_.n,
                      [&]<int N>(index_t, index_t i, VT* x) {
                        for (int e = 0; e < N; ++e)
                          x[e] = __builtin_convertvector(value(i + e), VT);
                      });
    } else {
      for (index_t i = 0; i < a_.n; ++i)
        put(__builtin_convertvector(value(i), VT), to + i * tile_.x_ld + s, count);
    }
  }

  const Matrix& a_;
  const Tile<T>& tile_;
  const index_t first_, count_;
  V *b_, *x_, *g_, *stored_, *y_;  // b_: the right sides, then the residuals
  V largest_[vectors], down_[vectors], x_norm_[vectors], residual_[vectors];
  V b_squares_[vectors] = {}, r_squares_[vectors] = {}, data_squares_[vectors];
  Int not_finite_[vectors] = {}, exponent_[vectors], needs_care_[vectors];
};

template <class T>
constexpr Routine<T> routine{RightSides<T>::workspace_bytes, RightSides<T>::solve};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), routine<float>,
                                                   routine<double>};

}  // namespace qrtool::shared
