// SPDX-License-Identifier: Apache-2.0
// strip_kernel.cpp: computes Q'Q and A - QR strip by strip in tiles of registers, compiled once for
// every instruction set. Half of each product is left out, since Q'Q is symmetric and R is upper
// triangular.
#include "core/measure/strip_kernel.hpp"

#include "core/simd/products.hpp"

namespace qrtool::strips {
namespace {

using Products = blocked::Products<double>;
using V = Products::V;
using Int = VectorOf<std::int64_t, Products::lanes>::type;
using blocked::lesser, blocked::round_up;
static_assert(width == blocked::width);

constexpr int lanes = Products::lanes;
/// The number of rows in a tile of registers.
constexpr int tile = blocked::tile_reflectors;
/// A tile that keeps two sums in registers, of the present run and of all runs, has half as many
/// rows.
constexpr int low_tile = tile / 2;
/// The most pairs of runs in a tile of rows are 2^most_levels - 1.
constexpr int most_levels = 8;
/// The most rows for which such tiles are faster.
constexpr index_t most_low_rows = 64;
/// The number of columns of Q whose products are subtracted together: sixteen columns of this many
/// rows of R take a third of a first-level cache.
constexpr index_t residual_inner = 128;

V load(const double* x) { return Products::load(x); }
void store(double* x, V value) { Products::store(x, value); }

int vectors_of(index_t columns) { return static_cast<int>((columns + lanes - 1) / lanes); }

double total(V sums) {
  double sum = 0;
  for (int l = 0; l < lanes; ++l) sum += sums[l];
  return sum;
}

// ---- packing

/// Holds the numbers that a row is multiplied by when it is packed, and the sum of the squares of
/// the packed numbers. The functions copy both into local variables, which the stores to memory
/// cannot change.
template <class T>
struct Packing {
  using From = typename VectorOf<T, lanes>::unaligned;

  double half, rest;
  V even{}, odd{};
  double alone = 0;

  [[gnu::always_inline]] V convert(const T* from) const {
    return __builtin_convertvector(*reinterpret_cast<const From*>(from), V) * half * rest;
  }
  [[gnu::always_inline]] void copy_strip(const T* from, double* to) {
#pragma GCC unroll 16
    for (int q = 0; q < width / lanes; ++q) {
      const V x = convert(from + q * lanes);
      store(to + q * lanes, x);
      (q % 2 == 0 ? even : odd) += x * x;
    }
  }
  /// Copies fewer than 32 columns, and fills up with zeros to a multiple of `unit`.
  [[gnu::always_inline]] void copy_rest(const T* from, index_t count, double* to) {
    index_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      const V x = convert(from + j);
      store(to + j, x);
      even += x * x;
    }
    for (; j < count; ++j) {
      const double x = static_cast<double>(from[j]) * half * rest;
      to[j] = x;
      alone += x * x;
    }
    for (; j % unit != 0; ++j) to[j] = 0;
  }
};

/// The next rows may be in other pages, which the processor does not prefetch.
template <class T>
void prefetch_row(const T* row, index_t columns) {
  constexpr index_t line = 64 / sizeof(T), most_lines = 8;
  for (index_t j = 0; j < lesser(columns, most_lines * line); j += line)
    __builtin_prefetch(row + j);
}

template <class T>
double pack(const Rows<T>& rows) {
  constexpr index_t ahead = 8;
  const Rows<T> f = rows;
  const index_t whole = f.columns / width * width, rest = f.columns - whole;
  double* const last = f.to + whole / width * f.strip_size;
  Packing<T> packing{.half = f.half, .rest = f.rest};
  for (index_t i = 0; i < f.rows; ++i) {
    const T* row = f.from + i * f.ld;
    if (f.ld > width) prefetch_row(row + ahead * f.ld, f.columns);
    double* to = f.to + i * width;
    for (index_t j = 0; j < whole; j += width, to += f.strip_size) packing.copy_strip(row + j, to);
    if (rest > 0) packing.copy_rest(row + whole, rest, last + i * width);
  }
  const index_t columns = round_up(f.columns, unit);
  for (index_t i = f.rows; i < round_up(f.rows, unit); ++i)
    for (index_t j = 0; j < columns; ++j)
      f.to[j / width * f.strip_size + i * width + j % width] = 0;
  return total(packing.even + packing.odd) + packing.alone;
}

/// Calls body(vector, N) for tiles of N = 2 vectors of columns, beginning with vector `first`, and
/// of 1 for an odd last vector.
template <class Body>
[[gnu::always_inline]] inline void for_tiles(int first, int vectors, Body body) {
  for (; first + 2 <= vectors; first += 2) body.template operator()<2>(first);
  if (first < vectors) body.template operator()<1>(first);
}

// ---- V'C

/// V'C of a tile of registers over some rows, in plain sums of a run.
template <int N>
struct LowTile {
  V x[low_tile][N];

  void clear() {
    for_each([&](int r, int l) { x[r][l] = V{}; });
  }

  [[gnu::always_inline]] void add_run(const double* v, const double* c, index_t rows) {
    V sum[low_tile][N] = {};
    Products::sum_tile(0, rows, v, 1, width, c, sum);
    for_each([&](int r, int l) { x[r][l] += sum[r][l]; });
  }
  template <class Body>
  [[gnu::always_inline]] static void for_each(Body body) {
#pragma GCC unroll 4
    for (int r = 0; r < low_tile; ++r)
#pragma GCC unroll 2
      for (int l = 0; l < N; ++l) body(r, l);
  }
};

/// Stores a tile of V'C. Sums are added pairwise: runs to pairs, and pairs like the digits of a
/// counter, which has reached `pair`.
template <int N>
[[gnu::always_inline]] inline void store_products(const Gram& g, index_t p, int q, double* w) {
  LowTile<N> waiting[most_levels];
  const double *v = g.v + p, *c = g.c + q * lanes;
  const index_t step = 2 * g.run, pairs = (g.rows + step - 1) / step;
  for (index_t pair = 0; pair < pairs; ++pair) {
    const index_t first = pair * step, left = lesser(step, g.rows - first);
    LowTile<N> sum;
    sum.clear();
    sum.add_run(v + first * width, c + first * width, lesser(g.run, left));
    if (left > g.run) {
      const index_t second = first + g.run;
      sum.add_run(v + second * width, c + second * width, left - g.run);
    }
    // The last pair adds all sums that are waiting.
    int level = 0;
    for (index_t digits = pair; pair == pairs - 1 ? digits != 0 : digits % 2 != 0; digits /= 2) {
      if (digits % 2 != 0)
        sum.for_each([&](int r, int l) { sum.x[r][l] += waiting[level].x[r][l]; });
      ++level;
    }
    if (pair < pairs - 1) {
      waiting[level] = sum;
    } else {
      sum.for_each(
          [&](int r, int l) { store(w + (p + r) * width + (q + l) * lanes, sum.x[r][l]); });
    }
  }
}

/// Returns the first vector of columns that rows p to p + 7 of V'C need, in whole tiles of two
/// vectors.
int first_vector(const Gram& g, index_t p) {
  return g.on_diagonal ? static_cast<int>(p / (2 * lanes) * 2) : 0;
}

[[gnu::noinline]] void sum_low_tiles(const Gram& g, double* w) {
  const int vectors = vectors_of(round_up(g.c_columns, unit));
  for (index_t p = 0; p < round_up(g.v_columns, unit); p += low_tile) {
    for_tiles(first_vector(g, p), vectors, [&]<int N>(int q) { store_products<N>(g, p, q, w); });
  }
}

/// Products::sum_tile() for the first `count` columns of X, with ahead(p) loaded into the
/// first-level cache for each.
template <int Rows, int N, class Ahead>
[[gnu::always_inline]] inline void sum_tile_and_load(index_t count, const double* x, index_t down,
                                                     index_t across, const double* y,
                                                     V (&sum)[Rows][N], Ahead ahead) {
  for (index_t p = 0; p < count; ++p) {
    __builtin_prefetch(ahead(p));
    V row[N];
#pragma GCC unroll 2
    for (int c = 0; c < N; ++c) row[c] = load(y + p * width + c * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) sum[r][c] += x[r * down + p * across] * row[c];
  }
}

/// Counts the lines of memory in a run of two strips, and the lines that are loaded during one of
/// its tiles.
constexpr index_t numbers_per_line = 8;
constexpr index_t lines_of_strip = blocked::sum_rows * width / numbers_per_line;
constexpr index_t tiles_of_run = width / tile * (width / (2 * lanes));
constexpr index_t lines_of_tile = 2 * lines_of_strip / tiles_of_run;

/// W += V'C of a run, while the next run is loaded into the first-level cache: the strips come from
/// the second-level cache at best.
void add_run(const Gram& g, index_t first, index_t rows, double* w) {
  const double *v = g.v + first * width, *c = g.c + first * width;
  const double* const next[2] = {v + rows * width, c + rows * width};
  index_t line = 0;
  for_tiles(0, vectors_of(round_up(g.c_columns, unit)), [&]<int N>(int q) {
    for (index_t p = 0; p < round_up(g.v_columns, unit); p += tile, line += lines_of_tile) {
      const double* const ahead =
          next[line / lines_of_strip % 2] + line % lines_of_strip * numbers_per_line;
      V sum[tile][N] = {};
      sum_tile_and_load(rows, v + p, 1, width, c + q * lanes, sum, [&](index_t i) {
        return ahead + i * lines_of_tile / blocked::sum_rows * numbers_per_line;
      });
#pragma GCC unroll 8
      for (int r = 0; r < tile; ++r)
#pragma GCC unroll 2
        for (int l = 0; l < N; ++l) {
          double* at = w + (p + r) * width + (q + l) * lanes;
          store(at, load(at) + sum[r][l]);
        }
    }
  });
}

/// W := V'C of a tile of rows, by runs.
[[gnu::noinline]] void sum_tile(const Gram& g, double* w) {
  if (g.run < blocked::sum_rows || g.rows <= most_low_rows) return sum_low_tiles(g, w);
  const index_t v_columns = round_up(g.v_columns, unit);
  const int vectors = vectors_of(round_up(g.c_columns, unit));
  for (index_t i = 0; i < v_columns * width; i += width)
    for (int q = 0; q < vectors; ++q) store(w + i + q * lanes, V{});
  for (index_t i = 0; i < g.rows; i += g.run) {
    const index_t count = lesser(g.run, g.rows - i);
    const double *v = g.v + i * width, *c = g.c + i * width;
    if (!g.on_diagonal) {
      add_run(g, i, count, w);
      continue;
    }
    for (index_t p = 0; p < v_columns; p += unit) {
      const int q = first_vector(g, p);
      Products::add_products(count, unit, v + p, c + q * lanes, vectors - q,
                             w + p * width + q * lanes);
    }
  }
}

void add_gram(const Gram& g) {
  if (g.lost == nullptr) return sum_tile(g, g.sum);
  const index_t v_columns = round_up(g.v_columns, unit);
  alignas(64) double w[width * width];
  const int vectors = vectors_of(round_up(g.c_columns, unit));
  Gram part = g;
  for (index_t i = 0; i < g.rows; i += tile_rows) {
    part.v = g.v + i * width;
    part.c = g.c + i * width;
    part.rows = lesser(tile_rows, g.rows - i);
    sum_tile(part, w);
    for (index_t p = 0; p < v_columns; ++p) {
      for (int q = first_vector(g, p); q < vectors; ++q) {
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

/// Describes a strip of A minus the product of some strips of Q and their rows of a strip of R.
struct StripProduct {
  const double* q;
  index_t q_strip_size;
  const double* r;
  double* a;
  index_t rows, inner, run;
  int vectors;
  index_t filled_rows;  // of R's first column; every other column may have one row more
};

/// Subtracts a tile of Q R from a tile of A, using only the first `inner` rows of R, since the
/// others are zero. The products are added in runs. Between runs the tile of A stays in registers
/// if there are enough of them for `Rows`, otherwise in the first-level cache.
template <int Rows, int N>
[[gnu::always_inline]] inline void subtract_tile(const StripProduct& f, index_t inner,
                                                 const double* q, const double* r, double* a) {
  constexpr bool in_registers = Rows < tile;
  V x[Rows][N];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int c = 0; c < N; ++c)
      if constexpr (in_registers) x[i][c] = load(a + i * width + c * lanes);
  for (index_t first = 0; first < inner; first += f.run) {
    const index_t end = lesser(first + f.run, inner);
    V sum[Rows][N] = {};
    for (index_t p = first; p < end;) {
      const index_t strip = p / width, start = strip * width, stop = lesser(start + width, end);
      const double* const rows = q + strip * f.q_strip_size;
      const double* const below = rows + Rows * width;
      sum_tile_and_load(stop - p, rows + p - start, width, 1, r + p * width, sum,
                        [&](index_t i) { return below + i * Rows; });
      p = stop;
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) {
        double* at = a + i * width + c * lanes;
        if constexpr (in_registers) {
          x[i][c] -= sum[i][c];
        } else {
          store(at, load(at) - sum[i][c]);
        }
      }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int c = 0; c < N; ++c)
      if constexpr (in_registers) store(a + i * width + c * lanes, x[i][c]);
}

/// Subtracts the product from a strip. A tile's rows of R stay in the first-level cache for all
/// rows of Q.
template <int Rows>
[[gnu::noinline]] void subtract_strip(const StripProduct& f) {
  for_tiles(0, f.vectors, [&]<int N>(int first) {
    const index_t column = first * lanes;
    const index_t inner = lesser(f.inner, f.filled_rows + column + N * lanes - 1);
    for (index_t i = 0; i < f.rows; i += Rows)
      subtract_tile<Rows, N>(f, inner, f.q + i * width, f.r + column, f.a + i * width + column);
  });
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
  const bool is_low = f.run < blocked::sum_rows || f.rows <= most_low_rows;
  const auto vectors_from = [&](index_t j) {
    return vectors_of(round_up(lesser(width, f.columns - j), unit));
  };
  for (index_t p = 0; p < f.inner; p += residual_inner) {
    for (index_t j = 0; j < f.columns; j += width) {
      const index_t filled = f.is_upper ? f.first_column + j + 1 - p : f.inner;
      if (filled + width <= 1) continue;
      const StripProduct product{.q = f.q + p / width * f.q_strip_size,
                                 .q_strip_size = f.q_strip_size,
                                 .r = f.r + j / width * f.r_strip_size + p * width,
                                 .a = f.a + j / width * f.a_strip_size,
                                 .rows = f.rows,
                                 .inner = lesser(residual_inner, f.inner - p),
                                 .run = f.run,
                                 .vectors = vectors_from(j),
                                 .filled_rows = filled};
      (is_low ? subtract_strip<low_tile> : subtract_strip<tile>)(product);
    }
  }
  double squares = 0;
  for (index_t j = 0; j < f.columns; j += width)
    squares += squares_of_strip(f.a + j / width * f.a_strip_size, f.rows, vectors_from(j));
  return squares;
}

// ---- norms

Int columns_of_lanes() {
  Int column;
  for (int l = 0; l < lanes; ++l) column[l] = l;
  return column;
}

/// Returns x in the lanes of the mask, and 0 in the others.
V select(Int mask, V x) { return reinterpret_cast<V>(reinterpret_cast<Int>(x) & mask); }

/// Sums the squares of a square of V'C. Columns beyond the last are zero, and need no mask.
double square_squares(const Square& f) {
  const Int column = columns_of_lanes();
  V twice[2] = {}, once{};
  const int vectors = vectors_of(round_up(f.columns, unit));
  for (index_t i = 0; i < f.rows; ++i) {
    int q = 0;
    const auto difference = [&]() -> V {
      const index_t at = i * width + q * lanes;
      return f.y == nullptr ? load(f.x + at) : load(f.x + at) - load(f.y + at);
    };
    if (f.on_diagonal) {
      q = static_cast<int>(i / lanes);
      const V x = difference(), right = select(column > i % lanes, x);
      const V on = select(column == i % lanes, x - f.identity);
      twice[0] += right * right;
      once += on * on;
      ++q;
    }
    for (; q < vectors; ++q) {
      const V x = difference();
      twice[1] += x * x;
    }
  }
  return 2 * total(twice[0] + twice[1]) + total(once);
}

double squares_below_diagonal(const Triangle& f) {
  const Int column = columns_of_lanes();
  V sums[2] = {};
  for (index_t i = f.first; i < f.end; ++i) {
    const index_t columns = lesser(i, f.columns);
    index_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const V x = load(f.r + j / width * f.strip_size + i * width + j % width);
      sums[0] += x * x;
    }
    if (j == columns) continue;
    const V x = load(f.r + j / width * f.strip_size + i * width + j % width);
    const V left = select(column < columns - j, x);
    sums[1] += left * left;
  }
  return total(sums[0] + sums[1]);
}

}  // namespace

#define QRTOOL_STRIPS(target) QRTOOL_JOIN(target, _strips)

extern const Kernels QRTOOL_STRIPS(QRTOOL_TARGET){
    QRTOOL_NAME(QRTOOL_TARGET), pack<float>,    pack<double>,          add_gram,
    residual_squares,           square_squares, squares_below_diagonal};

}  // namespace qrtool::strips
