// SPDX-License-Identifier: Apache-2.0
// strip_kernel.cpp: computes Q'Q and A - QR strip by strip in tiles of registers, compiled once for
// every instruction set. Half of each product is left out, since Q'Q is symmetric and R is upper
// triangular.
#include "core/cpu/check/strip_kernel.hpp"

#include "core/cpu/blocked/products.hpp"

namespace qrtool::strips {
namespace {

using Products = blocked::Products<double>;
using V = Products::V;
using Int = VectorOf<std::int64_t, Products::lanes>::type;
using blocked::lesser, blocked::round_up;
static_assert(width == blocked::width);

constexpr int lanes = Products::lanes;
/// The rows of a tile of registers.
constexpr int tile = blocked::tile_reflectors;

V load(const double* x) { return Products::load(x); }
void store(double* x, V value) { Products::store(x, value); }

int vectors_of(index_t columns) { return static_cast<int>((columns + lanes - 1) / lanes); }

double total(V sums) {
  double sum = 0;
  for (int l = 0; l < lanes; ++l) sum += sums[l];
  return sum;
}

// ---- packing

template <class T>
class Packer {
  using From = typename VectorOf<T, lanes>::unaligned;

 public:
  explicit Packer(const Rows<T>& rows) : f_(rows) {}

  double pack() {
    const index_t whole = f_.columns / width * width, rest = f_.columns - whole;
    double* const last = f_.to + whole / width * f_.strip_size;
    for (index_t i = 0; i < f_.rows; ++i) {
      const T* row = f_.from + i * f_.ld;
      prefetch(row);
      for (index_t j = 0; j < whole; j += width) {
        double* to = f_.to + j / width * f_.strip_size + i * width;
#pragma GCC unroll 16
        for (int q = 0; q < width / lanes; ++q) copy_vector(row + j + q * lanes, to + q * lanes);
      }
      if (rest > 0) copy_rest(row + whole, rest, last + i * width);
    }
    const index_t columns = round_up(f_.columns, unit);
    for (index_t i = f_.rows; i < round_up(f_.rows, unit); ++i)
      for (index_t j = 0; j < columns; ++j)
        f_.to[j / width * f_.strip_size + i * width + j % width] = 0;
    return total(squares_[0] + squares_[1]) + square_of_rest_;
  }

 private:
  /// The next rows are in other pages, so that the processor would not prefetch them.
  void prefetch(const T* row) const {
    constexpr index_t ahead = 8, line = 64 / sizeof(T), most_lines = 8;
    for (index_t j = 0; j < lesser(f_.columns, most_lines * line); j += line)
      __builtin_prefetch(row + ahead * f_.ld + j);
  }
  [[gnu::always_inline]] void copy_vector(const T* from, double* to) {
    const V x = __builtin_convertvector(*reinterpret_cast<const From*>(from), V) * f_.half * f_.rest;
    store(to, x);
    squares_[0] += x * x;
    const V swapped = squares_[0];
    squares_[0] = squares_[1];
    squares_[1] = swapped;
  }
  void copy_rest(const T* from, index_t count, double* to) {
    index_t j = 0;
    for (; j + lanes <= count; j += lanes) copy_vector(from + j, to + j);
    for (; j < count; ++j) {
      to[j] = static_cast<double>(from[j]) * f_.half * f_.rest;
      square_of_rest_ += to[j] * to[j];
    }
    for (; j % unit != 0; ++j) to[j] = 0;
  }

  const Rows<T>& f_;
  V squares_[2] = {};
  double square_of_rest_ = 0;
};

template <class T>
double pack(const Rows<T>& rows) {
  return Packer<T>(rows).pack();
}

// ---- V'C

/// W := V'C of a tile of rows, by runs.
void sum_tile(const Gram& g, index_t first, index_t rows, double* w) {
  const index_t v_columns = round_up(g.v_columns, unit);
  const int vectors = vectors_of(round_up(g.c_columns, unit));
  for (index_t i = 0; i < v_columns * width; i += lanes) store(w + i, V{});
  for (index_t i = first; i < first + rows; i += g.run) {
    const index_t count = lesser(g.run, first + rows - i);
    const double *v = g.v + i * width, *c = g.c + i * width;
    if (!g.on_diagonal) {
      Products::add_products(count, v_columns, v, c, vectors, w);
      continue;
    }
    // Eight rows of V'V need the columns from their diagonal on, in whole tiles of two vectors.
    for (index_t p = 0; p < v_columns; p += unit) {
      const index_t column = p / (2 * lanes) * (2 * lanes);
      Products::add_products(count, unit, v + p, c + column,
                             vectors - static_cast<int>(column / lanes), w + p * width + column);
    }
  }
}

void add_gram(const Gram& g) {
  alignas(64) double w[width * width];
  const index_t tile_rows = tile_runs * g.run, v_columns = round_up(g.v_columns, unit);
  const int vectors = vectors_of(round_up(g.c_columns, unit));
  for (index_t i = 0; i < g.rows; i += tile_rows) {
    sum_tile(g, i, lesser(tile_rows, g.rows - i), w);
    for (index_t p = 0; p < v_columns; ++p) {
      for (int q = 0; q < vectors; ++q) {
        const index_t at = p * width + q * lanes;
        const V before = load(g.sum + at), corrected = load(w + at) - load(g.lost + at);
        const V next = before + corrected;
        store(g.lost + at, (next - before) - corrected);
        store(g.sum + at, next);
      }
    }
  }
}

// ---- A - QR

/// A tile of A minus its tile of Q R.
template <int N>
[[gnu::always_inline]] inline void subtract_tile(index_t inner, index_t run, const double* q,
                                                 const double* r, double* a) {
  for (index_t first = 0; first < inner; first += run) {
    const index_t end = lesser(first + run, inner);
    V sum[tile][N] = {};
    for (index_t p = first; p < end; ++p) {
      V y[N];
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) y[c] = load(r + p * width + c * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < tile; ++i)
#pragma GCC unroll 2
        for (int c = 0; c < N; ++c) sum[i][c] += q[i * width + p] * y[c];
    }
#pragma GCC unroll 8
    for (int i = 0; i < tile; ++i)
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) {
        double* at = a + i * width + c * lanes;
        store(at, load(at) - sum[i][c]);
      }
  }
}

/// Subtracts the product of a strip of Q and 32 rows of a strip of R, which are upper triangular
/// where `on_diagonal`.
[[gnu::noinline]] void subtract_strip(const Residual& f, index_t inner, const double* q,
                                      const double* r, int vectors, bool on_diagonal, double* a) {
  const auto subtract = [&]<int N>(index_t i, int first) {
    const index_t column = first * lanes;
    const index_t needed = on_diagonal ? lesser(inner, column + N * lanes) : inner;
    subtract_tile<N>(needed, f.run, q + i * width, r + column, a + i * width + column);
  };
  for (index_t i = 0; i < f.rows; i += tile) {
    int v = 0;
    for (; v + 2 <= vectors; v += 2) subtract.template operator()<2>(i, v);
    if (v < vectors) subtract.template operator()<1>(i, v);
  }
}

double squares_of_strip(const double* a, index_t rows, int vectors) {
  V sums[4] = {};
  for (index_t i = 0; i < rows; ++i) {
    for (int q = 0; q < vectors; ++q) {
      const V x = load(a + i * width + q * lanes);
      sums[q % 4] += x * x;
    }
  }
  return total((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

double residual_squares(const Residual& f) {
  const index_t inner_strips = (f.inner + width - 1) / width;
  for (index_t p = 0; p < inner_strips; ++p) {
    for (index_t j = 0; j < f.columns; j += width) {
      const index_t diagonal = (f.first_column + j) / width;
      if (f.is_upper && p > diagonal) continue;
      subtract_strip(f, lesser(width, f.inner - p * width), f.q + p * f.q_strip_size,
                     f.r + j / width * f.r_strip_size + p * width * width,
                     vectors_of(round_up(lesser(width, f.columns - j), unit)),
                     f.is_upper && p == diagonal, f.a + j / width * f.a_strip_size);
    }
  }
  double squares = 0;
  for (index_t j = 0; j < f.columns; j += width) {
    squares += squares_of_strip(f.a + j / width * f.a_strip_size, f.rows,
                                vectors_of(round_up(lesser(width, f.columns - j), unit)));
  }
  return squares;
}

// ---- norms

double square_squares(const Square& f) {
  Int column;
  for (int l = 0; l < lanes; ++l) column[l] = l;
  V sums[4] = {};
  const int vectors = vectors_of(f.columns);
  for (index_t i = 0; i < f.rows; ++i) {
    for (int q = f.on_diagonal ? static_cast<int>(i / lanes) : 0; q < vectors; ++q) {
      const index_t at = i * width + q * lanes;
      V x = load(f.x + at);
      if (f.y != nullptr) x -= load(f.y + at);
      V weight = V{} + 2;  // an entry above the diagonal has its mirror image
      if (f.on_diagonal) {
        const Int right = (column + (q * lanes - i)) > 0, on = (column + (q * lanes - i)) == 0;
        const V one = reinterpret_cast<V>(reinterpret_cast<Int>(V{} + 1) & on);
        weight = reinterpret_cast<V>(reinterpret_cast<Int>(weight) & right) + one;
        x -= one * f.identity;
      }
      // What is beyond the columns or left of the diagonal may be undefined.
      const V kept = reinterpret_cast<V>(reinterpret_cast<Int>(x) &
                                         ((weight > 0) & (column < f.columns - q * lanes)));
      sums[q % 4] += weight * kept * kept;
    }
  }
  return total((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace

#define QRTOOL_STRIPS(target) QRTOOL_JOIN(target, _strips)

extern const Kernels QRTOOL_STRIPS(QRTOOL_TARGET){
    QRTOOL_NAME(QRTOOL_TARGET), pack<float>, pack<double>, add_gram,
    residual_squares,           square_squares};

}  // namespace qrtool::strips
