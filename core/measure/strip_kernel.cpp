// SPDX-License-Identifier: Apache-2.0
// strip_kernel.cpp: computes Q'Q and A - QR strip by strip in tiles of registers, compiled once for
// every instruction set. Half of each product is left out, since Q'Q is symmetric and R is upper
// triangular.
#include "core/measure/strip_kernel.hpp"

#include <utility>

#include "core/simd/products.hpp"
#include "core/simd/widened.hpp"

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

/// A sum of squares in parts that do not wait for each other.
struct Parts {
  V parts[4] = {};

  [[gnu::always_inline]] void add(int number, V x) { parts[number % 4] += x * x; }
  /// Adds the squares of x(row) for as many rows as a vector has lanes.
  template <class X>
  [[gnu::always_inline]] void add_rows(X x) {
#pragma GCC unroll 8
    for (int row = 0; row < lanes; ++row) add(row, x(row));
  }
  double sum() const { return total((parts[0] + parts[1]) + (parts[2] + parts[3])); }
};

/// Holds the numbers that a row is multiplied by when it is packed, and the sum of the squares of
/// the packed numbers. The functions copy both into local variables, which the stores to memory
/// cannot change.
template <class T, bool has_rest>
struct Packing {
  using From = typename VectorOf<T, lanes>::unaligned;

  double half, rest;
  Parts squares;
  double alone = 0;

  template <class X>
  [[gnu::always_inline]] X scaled(X x) const {
    return has_rest ? x * half * rest : x * half;
  }
  [[gnu::always_inline]] V convert(const T* from) const {
    return scaled(widened<V>(*reinterpret_cast<const From*>(from)));
  }
  [[gnu::always_inline]] void copy_strip(const T* from, double* to) {
#pragma GCC unroll 16
    for (int q = 0; q < width / lanes; ++q) {
      const V x = convert(from + q * lanes);
      store(to + q * lanes, x);
      squares.add(q, x);
    }
  }
  /// Copies fewer than 32 columns, and fills up with zeros to a multiple of `unit`.
  [[gnu::always_inline]] void copy_rest(const T* from, index_t count, double* to) {
    index_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      const V x = convert(from + j);
      store(to + j, x);
      squares.add(0, x);
    }
    for (; j < count; ++j) {
      const double x = scaled(static_cast<double>(from[j]));
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

template <bool has_rest, class T>
double pack_scaled(const Rows<T>& rows) {
  constexpr index_t ahead = 8;
  const Rows<T> f = rows;
  const index_t whole = f.columns / width * width, rest = f.columns - whole;
  double* const last = f.to + whole / width * f.strip_size;
  Packing<T, has_rest> packing{.half = f.half, .rest = f.rest, .squares = {}};
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
  return packing.squares.sum() + packing.alone;
}

template <class T>
double pack(const Rows<T>& rows) {
  return rows.rest == 1 ? pack_scaled<false>(rows) : pack_scaled<true>(rows);
}

/// Calls body(vector, N) for tiles of N = 2 vectors of columns, beginning with vector `first`, and
/// of 1 for an odd last vector.
template <class Body>
[[gnu::always_inline]] inline void for_tiles(int first, int vectors, Body body) {
  for (; first + 2 <= vectors; first += 2) body.template operator()<2>(first);
  if (first < vectors) body.template operator()<1>(first);
}

// ---- V'C

/// Some entries of V'C in registers.
template <int Rows, int N>
struct Tile {
  V x[Rows][N];

  template <class Body>
  [[gnu::always_inline]] static void for_each(Body body) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (int l = 0; l < N; ++l) body(r, l);
  }
  [[gnu::always_inline]] Tile& operator+=(const Tile& other) {
    for_each([&](int r, int l) { x[r][l] += other.x[r][l]; });
    return *this;
  }
};

/// Returns V'C of some rows in sums of Run products, which are added pairwise. Their number is
/// Count, or at most Run. A column of the longest run's rows at `next` is loaded meanwhile.
template <int Run, int Count, int Rows, int N>
[[gnu::always_inline]] inline Tile<Rows, N> sum_of_runs(const double* v, const double* c,
                                                        index_t rows, const double* next) {
  if constexpr (Count > Run) {
    constexpr int half = Count / 2;
    Tile<Rows, N> sum = sum_of_runs<Run, half, Rows, N>(v, c, half, next);
    sum += sum_of_runs<Run, half, Rows, N>(v + half * width, c + half * width, half, next);
    return sum;
  } else {
    Tile<Rows, N> sum{};
    const index_t count = Run <= unit ? Run : rows;
#pragma GCC unroll 4
    for (index_t i = 0; i < count; ++i) {
      if constexpr (Run == blocked::sum_rows) __builtin_prefetch(next + i * width);
      V row[N];
#pragma GCC unroll 2
      for (int l = 0; l < N; ++l) {
        row[l] = load(c + i * width + l * lanes);
        if constexpr (Run < 4) keep_in_register(row[l]);
      }
      sum.for_each([&](int r, int l) { sum.x[r][l] += v[i * width + r] * row[l]; });
    }
    return sum;
  }
}

/// Returns V'C of the rows of a block. Sums of short runs need registers for two tiles. They are
/// added pairwise like the digits of a counter, which has reached `number`.
template <int Run, int Rows, int N>
[[gnu::always_inline]] inline Tile<Rows, N> sum_of_block(const double* v, const double* c,
                                                         index_t rows, const double* next) {
  constexpr int each = Run < 4 ? static_cast<int>(unit) : Run;
  constexpr int most_levels = 8;
  Tile<Rows, N> waiting[most_levels];
  for (index_t number = 0;; ++number, v += each * width, c += each * width, rows -= each) {
    Tile<Rows, N> sum = sum_of_runs<Run, each, Rows, N>(v, c, lesser(each, rows), next);
    const bool is_last = rows <= each;
    int level = 0;
    for (index_t digits = number; is_last ? digits != 0 : digits % 2 != 0; digits /= 2, ++level)
      if (digits % 2 != 0) sum += waiting[level];
    if (is_last) return sum;
    waiting[level] = sum;
  }
}

/// Returns the first vector of columns that rows of V'C from p on need.
int first_vector(const Gram& g, index_t p) {
  return g.on_diagonal ? static_cast<int>(p / lanes) : 0;
}

/// W := V'C of the first block of rows, W += V'C of each block after it. A block of both strips
/// fits the first-level cache. The longest runs are added one after another.
template <int Run>
[[gnu::noinline]] void sum_blocks(const Gram& g, double* w) {
  constexpr int rows_of_tile = Run < 4 ? tile / 2 : tile;
  constexpr index_t block = Run < blocked::sum_rows ? 64 : blocked::sum_rows;
  const int vectors = vectors_of(round_up(g.c_columns, unit));
  for (index_t first = 0; first < g.rows; first += block) {
    const double *v = g.v + first * width, *c = g.c + first * width;
    const index_t rows = lesser(block, g.rows - first);
    for (index_t p = 0; p < round_up(g.v_columns, unit); p += rows_of_tile) {
      for_tiles(first_vector(g, p), vectors, [&]<int N>(int q) {
        // The tiles together load the next block: lines of C and of V in turn.
        const index_t turn = p / rows_of_tile, line = N * lanes > 8 ? turn / 2 % 2 * 8 : 0;
        const double* const next = (turn % 2 == 0 ? c : v) + block * width + q * lanes + line;
        auto sum = sum_of_block<Run, rows_of_tile, N>(v + p, c + q * lanes, rows, next);
        double* const to = w + p * width + q * lanes;
        if (first > 0)
          sum.for_each([&](int r, int l) { sum.x[r][l] += load(to + r * width + l * lanes); });
        sum.for_each([&](int r, int l) { store(to + r * width + l * lanes, sum.x[r][l]); });
      });
    }
  }
}

/// W := V'C of a tile of rows, by runs. The two blocks of its second half are added to each other
/// first.
void sum_tile(const Gram& g, double* w) {
  const auto sum = g.run <= 2    ? sum_blocks<2>
                   : g.run <= 4  ? sum_blocks<4>
                   : g.run <= 8  ? sum_blocks<8>
                   : g.run <= 16 ? sum_blocks<16>
                                 : sum_blocks<32>;
  constexpr index_t half = tile_rows / 2;
  if (g.run >= blocked::sum_rows || g.rows <= half) return sum(g, w);
  alignas(64) double second[width * width];
  Gram part = g;
  part.rows = half;
  sum(part, w);
  part.v += half * width;
  part.c += half * width;
  part.rows = g.rows - half;
  sum(part, second);
  for (index_t p = 0; p < round_up(g.v_columns, unit); ++p) {
    for (int q = first_vector(g, p); q < vectors_of(round_up(g.c_columns, unit)); ++q) {
      const index_t at = p * width + q * lanes;
      store(w + at, load(w + at) + load(second + at));
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
  index_t rows, inner;
  int vectors;
  index_t filled_rows;  // of R's first column; every other column may have one row more
};

/// Subtracts a tile of Q R from a tile of A, using only the first `inner` rows of R, since the
/// others are zero. Sums of Run products are subtracted. Meanwhile the next rows of Q are loaded
/// into the first-level cache.
template <int Run, int N>
[[gnu::always_inline]] inline void subtract_tile(const StripProduct& f, index_t inner,
                                                 const double* q, const double* r, double* a,
                                                 Parts& squares) {
  constexpr index_t part = lesser(Run, width);
  V x[tile][N] = {};
  const auto for_each = [&](auto body) {
#pragma GCC unroll 8
    for (int i = 0; i < tile; ++i)
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) body(x[i][c], i, c);
  };
  for (index_t first = 0; first < inner; first += part, r += part * width) {
    if (first % Run == 0) for_each([](V& y, int, int) { y = V{}; });
    const double* const rows = q + first / width * f.q_strip_size + first % width;
    const index_t count = Run == unit ? unit : lesser(part, inner - first);
#pragma GCC unroll 8
    for (index_t p = 0; p < count; ++p) {
      __builtin_prefetch(rows + tile * (width + p));
      V row[N];
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) row[c] = load(r + p * width + c * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < tile; ++i)
#pragma GCC unroll 2
        for (int c = 0; c < N; ++c) x[i][c] -= rows[i * width + p] * row[c];
    }
    if (const index_t next = first + part; next % Run == 0 || next >= inner) {
      for_each([&](V& y, int i, int c) {
        double* const at = a + i * width + c * lanes;
        y += load(at);
        store(at, y);
      });
    }
  }
  for_each([&](const V& y, int i, int c) { squares.add(i * N + c, y); });
}

/// Subtracts the product from a strip, and returns the sum of the squares of the strip. A tile's
/// rows of R stay in the first-level cache for all rows of Q.
template <int Run>
[[gnu::noinline]] double subtract_strip(const StripProduct& f) {
  Parts squares;
  for_tiles(0, f.vectors, [&]<int N>(int first) {
    const index_t column = first * lanes;
    const index_t inner = lesser(f.inner, f.filled_rows + column + N * lanes - 1);
    for (index_t i = 0; i < f.rows; i += tile)
      subtract_tile<Run, N>(f, inner, f.q + i * width, f.r + column, f.a + i * width + column,
                            squares);
  });
  return squares.sum();
}

double residual_squares(const Residual& f) {
  double squares = 0;
  for (index_t p = 0; p < f.inner; p += residual_inner) {
    for (index_t j = 0; j < f.columns; j += width) {
      // R's columns of the strip have this number of rows, beginning with the first, and the last
      // of them at most `rows`.
      const index_t filled = f.is_upper ? f.first_column + j + 1 - p : f.inner;
      const index_t rows = lesser(f.inner, p + filled + width - 1);
      if (rows <= p) continue;
      const StripProduct product{
          .q = f.q + p / width * f.q_strip_size,
          .q_strip_size = f.q_strip_size,
          .r = f.r + j / width * f.r_strip_size + p * width,
          .a = f.a + j / width * f.a_strip_size,
          .rows = f.rows,
          .inner = lesser(residual_inner, f.inner - p),
          .vectors = vectors_of(round_up(lesser(width, f.columns - j), unit)),
          .filled_rows = filled};
      const double of_strip = (f.run <= 8    ? subtract_strip<8>
                               : f.run <= 16 ? subtract_strip<16>
                               : f.run <= 32 ? subtract_strip<32>
                                             : subtract_strip<128>)(product);
      if (rows <= p + residual_inner) squares += of_strip;
    }
  }
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

/// Sums the squares of a square of V'C. Columns and rows beyond the last are zero.
template <bool has_y>
double sum_square(const Square& f) {
  const Int column = columns_of_lanes();
  const int vectors = vectors_of(round_up(f.columns, unit));
  Parts twice, once;
  for (index_t i = 0; i < f.rows; i += lanes) {
    const auto difference = [&](int row, int q) -> V {
      const index_t at = (i + row) * width + q * lanes;
      return has_y ? load(f.x + at) - load(f.y + at) : load(f.x + at);
    };
    int q = 0;
    if (f.on_diagonal) {
      q = static_cast<int>(i / lanes);
      twice.add_rows([&](int row) { return select(column > row, difference(row, q)); });
      once.add_rows([&](int row) {
        const double identity = i + row < f.rows ? f.identity : 0;
        return select(column == row, difference(row, q) - identity);
      });
      ++q;
    }
    for (; q < vectors; ++q) twice.add_rows([&](int row) { return difference(row, q); });
  }
  return 2 * twice.sum() + once.sum();
}

double square_squares(const Square& f) {
  return f.y == nullptr ? sum_square<false>(f) : sum_square<true>(f);
}

/// Rows and columns beyond the last are zero.
double squares_below_diagonal(const Triangle& f) {
  const Int column = columns_of_lanes();
  Parts squares;
  for (index_t i = f.first; i < f.end; i += lanes) {
    const auto at = [&](int row, index_t j) {
      return load(f.r + j / width * f.strip_size + (i + row) * width + j % width);
    };
    for (index_t j = 0; j < lesser(i, f.columns); j += lanes)
      squares.add_rows([&](int row) { return at(row, j); });
    if (i < f.columns) squares.add_rows([&](int row) { return select(column < row, at(row, i)); });
  }
  return squares.sum();
}

// ---- Q of reflectors

/// The reflectors that are applied together, and the rows in a plain sum of their products, as
/// core/eigen/householder.hpp has them.
constexpr index_t block_reflectors = unit, part_rows = 16;

/// W += V'C of some columns of V and some vectors of columns.
void sum_parts(index_t rows, index_t columns, const double* v, const double* c, int vectors,
               double* w) {
  for (index_t i = 0; i < rows; i += part_rows)
    Products::add_products(lesser(part_rows, rows - i), columns, v + i * width, c + i * width,
                           vectors, w);
}

/// Returns -i x for complex numbers (re, im, re, im, ..).
template <int... I>
[[gnu::always_inline]] inline V turned(V x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, -x, (I % 2 == 0 ? I + 1 : lanes + I - 1)...);
}
V turned(V x) { return turned(x, std::make_integer_sequence<int, lanes>()); }

/// Returns row j of V^H C from V'C, in which the parts of a complex row of V stand below each
/// other.
template <int Parts>
[[gnu::always_inline]] inline V row_of_product(const double* products, index_t j) {
  const double* const row = products + Parts * j * width;
  return Parts == 1 ? load(row) : load(row) + turned(load(row + width));
}

/// Applies a block of reflectors to C: C - V W, in which row j of W is tau_j (v_j^H C - the sum
/// over later i of v_j^H v_i W_i). With complex numbers row i W_j of W follows row W_j, since V has
/// the columns re, im, re, im, .. The rows of `gram` are those of V^H V.
template <int Parts>
void apply_block(index_t rows, const double* v, const double* gram, const double* tau, int vectors,
                 double* c) {
  constexpr index_t reflectors = Parts * block_reflectors;
  alignas(64) double w[reflectors * width] = {};
  sum_parts(rows, reflectors, v, c, vectors, w);
  for (index_t j = block_reflectors - 1; j >= 0; --j) {
    V later[width / lanes] = {};
    for (index_t i = Parts * (j + 1); i < reflectors; ++i)
#pragma GCC unroll 16
      for (int q = 0; q < width / lanes; ++q)
        later[q] += gram[j * width + i] * load(w + i * width + q * lanes);
#pragma GCC unroll 16
    for (int q = 0; q < width / lanes; ++q) {
      const V row = row_of_product<Parts>(w + q * lanes, j) - later[q];
      double* const to = w + Parts * j * width + q * lanes;
      V product = tau[Parts * j] * row;
      if constexpr (Parts == 2) product -= tau[Parts * j + 1] * turned(row);
      store(to, product);
      if constexpr (Parts == 2) store(to + width, -turned(product));
    }
  }
  // A sum is subtracted once, since roundings at the size of C would be as many as its products.
  subtract_strip<reflectors>({.q = v,
                              .q_strip_size = 0,
                              .r = w,
                              .a = c,
                              .rows = rows,
                              .inner = reflectors,
                              .vectors = vectors,
                              .filled_rows = reflectors});
}

/// A reflector that begins at row j changes only Q[j:, j:].
template <int Parts>
void apply_all(const Reflectors& f) {
  constexpr index_t block = Parts * unit;
  for (index_t j = round_up(f.count, unit) - unit; j >= 0; j -= unit) {
    const index_t rows = f.rows - j, column = Parts * j, strip = column / width;
    double* const v = f.v + strip * f.v_strip_size + j * width + column % width;
    for (index_t i = 0; i < unit; ++i)
      for (index_t p = Parts * i; p < block; ++p)
        v[i * width + p] = p == Parts * i && j + i < f.count ? 1 : 0;
    alignas(64) double products[block * width] = {}, gram[unit * width];
    sum_parts(rows, block, v, v, vectors_of(block), products);
    for (index_t i = 0; i < unit; ++i)
      for (int q = 0; q < vectors_of(block); ++q)
        store(gram + i * width + q * lanes, row_of_product<Parts>(products + q * lanes, i));
    for (index_t s = strip; s * width < f.columns; ++s) {
      const index_t first = s == strip ? column % width : 0;
      const index_t columns = lesser(width, f.columns - s * width);
      apply_block<Parts>(rows, v, gram, f.tau + column, vectors_of(round_up(columns, unit) - first),
                         f.q + s * f.q_strip_size + j * width + first);
    }
  }
}

void apply_reflectors(const Reflectors& f) { f.is_complex ? apply_all<2>(f) : apply_all<1>(f); }

}  // namespace

#define QRTOOL_STRIPS(target) QRTOOL_JOIN(target, _strips)

extern const Kernels QRTOOL_STRIPS(QRTOOL_TARGET){
    QRTOOL_NAME(QRTOOL_TARGET), pack<float>,    pack<double>,           add_gram,
    residual_squares,           square_squares, squares_below_diagonal, apply_reflectors};

}  // namespace qrtool::strips
