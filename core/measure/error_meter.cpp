// SPDX-License-Identifier: Apache-2.0
// error_meter.cpp: measures a factorization a slab of rows at a time, in tasks that any thread may
// take (compare LAPACK's TESTING/LIN/dqrt01).
//
// How far the measured error may be from the true one, with eps = 2^-53. An entry of Q'Q is made of
// plain sums of L products. These are added pairwise to the sum of a tile of 256 rows (one after
// another for L = 32), and tiles are added by Kahan's method.
//
//   - Each product takes part in at most L + d additions, d = 8, or 1 + log2(256 / L). So the error
//     of an entry is at most (L + d + 2) eps sum_i |q_ip q_iq| <= (L + 10) eps, for any data.
//   - It comes near that only where all roundings have one sign, as where all terms are equal. Then
//     the partial sum of p terms loses at most eps of itself: together (L + 1) / 2 eps of the sum
//     of a run, while sums of pairs are exact; for L = 32 eight runs add another 4 eps. For Q = I -
//     2/n 11', whose equal terms have the sum 4/n, ||error|| is then at most 2 (L + 1) eps = (L +
//     1) u, for L = 32 at most 41 u.
//   - Independent roundings have a root mean square of 1/3^(1/2) of their bound. In a Q whose
//     entries have the size m^(-1/2) a sum of p terms is p/m on the diagonal and p^(1/2)/m beside
//     it. Over all k columns ||error||^2 <= eps^2 (L^2/9 + k (L + d) / 6); such an error is added
//     to the square of the true one.
//
// choose_runs() makes L at most a sixteenth of the bar in units of u from 64 rows on, which keeps
// the second and the third line below 0.1 of the bar. With fewer rows the rounding of the products
// themselves is what remains. The tests compare with sums in twice the precision: all errors are
// below 0.1 of the bar, but for equal terms in fewer than 32 rows, where it is 0.15 for one
// shape. Up to 32 rows an orthogonality above 0.75 of the bar is therefore measured again in twice
// the precision. The entries of A - QR are such sums with |Q| |R| in place of |Q|'|Q|, where runs
// are subtracted from A one after another; relative to ||A|| they have a smaller part of the bar.
// Their runs may therefore be twice as long, and where the bar is 1024 u or more four times: an
// eighth of the bar. With independent roundings the error of a square matrix does not depend on L
// there: eps (L/6 + n/(3 L))^(1/2), since longer runs are subtracted fewer times.
//
// Complex matrices are measured as real ones of their rows (re, im), with twice as many columns.
// A - QR is then A minus Q times the embedding of R, in which r is [re im; -im re]. The real Gram
// matrix W of X = Q (or A) folds into the complex one, entry by entry:
//
//     re G_ij = W(re_i, re_j) + W(im_i, im_j)      im G_ij = W(re_i, im_j) - W(im_i, re_j)
#include "core/measure/error_meter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/machine/host.hpp"
#include "core/measure/meter_layout.hpp"
#include "core/measure/strips.hpp"
#include "core/measure/wide_residual.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {
namespace {

using strips::ceiling, strips::entries, strips::pack;
using strips::CompensatedSum, strips::Scaling;
using strips::unit, strips::width;

using meter::call_rows, meter::Layout, meter::layout_of, meter::pack_rows;

}  // namespace

std::span<const strips::Kernels* const> strips::kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(strips, strips)};
  return supported(all);
}

struct ErrorMeter::State {
  State(index_t all_rows, index_t all_columns, index_t q_cols, index_t all_r_rows, int most_threads,
        bool has_complex)
      : is_complex(has_complex),
        is_empty(std::min(all_rows, all_columns) == 0),
        has_q(q_cols > 0),
        m(all_rows),
        k(std::min(all_rows, all_columns)),
        n((is_complex ? 2 : 1) * all_columns),
        r_rows((is_complex && has_q ? 2 : 1) * all_r_rows),
        is_wide(!has_q && is_very_wide(m, all_columns)),
        layout(layout_of(is_wide ? 0 : m, is_wide ? 0 : all_columns, q_cols, all_r_rows,
                         most_threads, is_complex)),
        memory(allocate_host(static_cast<std::size_t>(layout.size()) * sizeof(double))) {
    double* at = reinterpret_cast<double*>(memory.get());
    const auto take = [&](index_t size) { return std::exchange(at, at + size); };
    is_wide = is_wide && !is_empty;
    gram = take(layout.gram_size());
    lost = take(layout.gram_size());
    x = take(layout.x_strips * layout.x_strip_size);
    r = take(layout.n_strips * layout.r_strip_size);
    a_tiles = take(layout.threads * layout.tile_size());
    slots = take(layout.slots());
    if (is_complex && has_q) embedded_r = Batch<double>(1, r_rows, n);
  }

  // ---- tasks

  /// Calls body(task, worker) for every task. The sums do not depend on which worker does a task.
  template <class Body>
  void for_tasks(index_t tasks, double operations, Body body) const {
    strips::for_tasks(tasks, operations, threads, body);
  }

  /// Calls body(s, t) for the strips s <= t of a pair of groups.
  template <class Body>
  void for_pair(index_t pair, Body body) const {
    const auto column =
        static_cast<index_t>((std::sqrt(8.0 * static_cast<double>(pair) + 1) - 1) / 2);
    const index_t each = layout.group_strips, row = pair - column * (column + 1) / 2;
    const index_t t_end = std::min((column + 1) * each, layout.x_strips);
    for (index_t t = column * each; t < t_end; ++t)
      for (index_t s = row * each; s < std::min((row + 1) * each, t + 1); ++s) body(s, t);
  }

  index_t columns_of(index_t strip) const {
    return std::min(width, layout.x_columns - strip * width);
  }

  static index_t square_at(index_t s, index_t t) { return (t * (t + 1) / 2 + s) * width * width; }

  /// Packs rows [first, first + count) of a matrix from row `at` of its strips on. Returns the sum
  /// of squares.
  template <class T>
  static double pack_some(MatrixView<const T> from, index_t first, const Scaling& scaling,
                          double* to, index_t strip_size) {
    const index_t count = std::min(pack_rows, from.rows - first);
    return pack({.from = from.data + first * from.ld,
                 .ld = from.ld,
                 .rows = count,
                 .columns = from.cols,
                 .half = scaling.half,
                 .rest = scaling.rest,
                 .to = to + first * width,
                 .strip_size = strip_size});
  }

  // ---- R

  template <class T>
  void start(MatrixView<const T> from) {
    is_double = real_element_type<T> == ElementType::float64;
    if constexpr (!is_complex_number<T>) {
      start_packed(from);
      diagonal_ratio = strips::diagonal_ratio_of(k, [&](index_t i) { return r_at(i, i); });
    } else {
      if (has_q) {
        embed(from, embedded_r.view()[0]);
        start_packed(MatrixView<const double>(embedded_r.view()[0]));
      } else {
        start_packed(interleaved(from));
      }
      lower = 0;
      diagonal_ratio = strips::diagonal_ratio_of(
          k, [&](index_t i) { return std::abs(std::complex<double>(from(i, i))); });
      for (index_t i = 0; i < from.rows; ++i)
        for (index_t j = 0; j < std::min(i, from.cols); ++j) lower += square_of(from(i, j));
    }
  }

  /// Returns |entry|^2 of the scaled entry.
  template <class C>
  double square_of(const C& entry) const {
    const double re = static_cast<double>(entry.real()) * scaling.half * scaling.rest;
    const double im = static_cast<double>(entry.imag()) * scaling.half * scaling.rest;
    return re * re + im * im;
  }

  template <class T>
  void start_packed(MatrixView<const T> from) {
    runs = strips::choose_runs(is_double, m, is_complex ? n / 2 : n);
    rows_added = 0;
    norm_a = residual = {};
    is_cleared = false;
    const index_t packs = ceiling(r_rows, pack_rows);
    scaling = Scaling(scale);
    for_tasks(packs, entries(r_rows, n), [&](index_t task, int) {
      const index_t first = task * pack_rows;
      pack_some(from, first, scaling, r, layout.r_strip_size);
      slots[task] = kernels.squares_below_diagonal({.r = r,
                                                    .strip_size = layout.r_strip_size,
                                                    .columns = n,
                                                    .first = first,
                                                    .end = std::min(first + pack_rows, r_rows)});
    });
    lower = 0;
    for (index_t task = 0; task < packs; ++task) lower += slots[task];
    r_is_upper = lower == 0;
  }

  /// Sets X'X to zero for a new matrix. A matrix of one tile does not need it, because its squares
  /// are stored, not added.
  void clear_gram() {
    if (!is_cleared) std::fill_n(gram, 2 * layout.gram_size(), 0.0);
    is_cleared = true;
  }

  double r_at(index_t i, index_t j) const {
    return r[j / width * layout.r_strip_size + i * width + j % width];
  }

  // ---- rows of A and Q

  /// Adds at most layout.rows rows.
  template <class T>
  void add_slab(MatrixView<const T> a, MatrixView<const T> q) {
    if (!has_q) return add_slab_of_a(a);
    const Scaling unscaled;
    const index_t packs = ceiling(a.rows, pack_rows);
    for_tasks(packs, entries(a.rows, layout.x_columns), [&](index_t task, int) {
      pack_some(q, task * pack_rows, unscaled, x, layout.x_strip_size);
    });
    prepare_gram(a.rows);
    // The tasks of A - QR come first: with 16 threads the longest of them takes as long as a
    // thread's share of a slab.
    const index_t pairs = layout.group_pairs();
    const index_t tiles = ceiling(a.rows, layout.tile_rows) * layout.n_groups;
    for_tasks(tiles + pairs, entries(a.rows, layout.x_columns) * 2 * static_cast<double>(n),
              [&](index_t task, int worker) {
                if (task < tiles) {
                  add_residual(a, task, a_tiles + worker * layout.tile_size());
                } else {
                  add_gram(task - tiles, a.rows);
                }
              });
    for (index_t tile = 0; tile < tiles; ++tile) {
      norm_a.add(slots[2 * tile]);
      residual.add(slots[2 * tile + 1]);
    }
    rows_added += a.rows;
  }

  template <class T>
  void add_slab_of_a(MatrixView<const T> a) {
    double* const to = x + (layout.keeps_a ? rows_added * width : 0);
    const index_t packs = ceiling(a.rows, pack_rows);
    for_tasks(packs, entries(a.rows, n), [&](index_t task, int) {
      slots[task] = pack_some(a, task * pack_rows, scaling, to, layout.x_strip_size);
    });
    for (index_t task = 0; task < packs; ++task) norm_a.add(slots[task]);
    if (!layout.keeps_a) {
      prepare_gram(a.rows);
      for_tasks(layout.group_pairs(), entries(a.rows, n) * static_cast<double>(n),
                [&](index_t task, int) { add_gram(task, a.rows); });
    }
    rows_added += a.rows;
  }

  void prepare_gram(index_t rows) {
    is_one_tile = !is_cleared && rows == m && rows <= strips::tile_rows;
    if (!is_one_tile) clear_gram();
  }

  /// Adds X'X of the packed rows in a pair of groups.
  void add_gram(index_t pair, index_t rows) const {
    for_pair(pair, [&](index_t s, index_t t) {
      add_square(x, layout.x_strip_size, rows, {s, t}, gram + square_at(s, t),
                 is_one_tile ? nullptr : lost + square_at(s, t));
    });
  }

  struct Strips {
    index_t s, t;
  };

  /// sum += M_s'M_t of a packed matrix M. Without `rest` the sum is stored, and rows are one tile.
  void add_square(const double* packed, index_t strip_size, index_t rows, Strips at, double* sum,
                  double* rest) const {
    kernels.add_gram({.v = packed + at.s * strip_size,
                      .c = packed + at.t * strip_size,
                      .rows = rows,
                      .v_columns = columns_of(at.s),
                      .c_columns = columns_of(at.t),
                      .run = runs.gram,
                      .on_diagonal = at.s == at.t,
                      .sum = sum,
                      .lost = rest});
  }

  /// Computes ||A||^2 and ||A - QR||^2 of some rows and strips.
  template <class T>
  void add_residual(MatrixView<const T> a, index_t tile, double* packed) const {
    const index_t first_row = tile / layout.n_groups * layout.tile_rows;
    // The groups on the right, which have more rows of R, come first.
    const index_t group = layout.n_groups - 1 - tile % layout.n_groups;
    const index_t first_strip = group * layout.tile_strips, column = first_strip * width;
    const index_t rows = std::min(layout.tile_rows, a.rows - first_row);
    const index_t columns = std::min(layout.tile_strips * width, n - column);
    slots[2 * tile] = pack({.from = a.data + first_row * a.ld + column,
                            .ld = a.ld,
                            .rows = rows,
                            .columns = columns,
                            .half = scaling.half,
                            .rest = scaling.rest,
                            .to = packed,
                            .strip_size = layout.a_strip_size});
    slots[2 * tile + 1] = kernels.residual_squares({.q = x + first_row * width,
                                                    .q_strip_size = layout.x_strip_size,
                                                    .r = r + first_strip * layout.r_strip_size,
                                                    .r_strip_size = layout.r_strip_size,
                                                    .a = packed,
                                                    .a_strip_size = layout.a_strip_size,
                                                    .rows = ceiling(rows, unit) * unit,
                                                    .columns = columns,
                                                    .inner = layout.x_columns,
                                                    .first_column = column,
                                                    .run = runs.residual,
                                                    .is_upper = r_is_upper});
  }

  // ---- norms

  double square_squares(Strips at, const double* sum, const double* minus, double identity) const {
    if (is_complex) return folded_squares(at, sum, minus, identity);
    return kernels.square_squares({.x = sum,
                                   .y = minus,
                                   .rows = columns_of(at.s),
                                   .columns = columns_of(at.t),
                                   .identity = identity,
                                   .on_diagonal = at.s == at.t});
  }

  /// square_squares() of the complex matrix G that a square of W folds into.
  double folded_squares(Strips at, const double* sum, const double* minus, double identity) const {
    const auto entry = [&](index_t i, index_t j) {
      const index_t place = i * width + j;
      return minus == nullptr ? sum[place] : sum[place] - minus[place];
    };
    double squares = 0;
    for (index_t i = 0; i < columns_of(at.s); i += 2) {
      index_t j = 0;
      if (at.s == at.t) {
        const double on = (entry(i, i) - identity) + entry(i + 1, i + 1);
        squares += on * on;
        j = i + 2;
      }
      for (; j < columns_of(at.t); j += 2) {
        const double re = entry(i, j) + entry(i + 1, j + 1);
        const double im = entry(i, j + 1) - entry(i + 1, j);
        squares += 2 * (re * re + im * im);
      }
    }
    return squares;
  }

  /// Returns the root of the sum of squares(s, t) over all squares of X'X, each of which takes
  /// `operations`.
  template <class Squares>
  double norm_of(double operations, Squares squares) const {
    const index_t pairs = layout.group_pairs();
    for_tasks(pairs, operations * static_cast<double>(pairs), [&](index_t task, int) {
      slots[task] = 0;
      for_pair(task, [&](index_t s, index_t t) { slots[task] += squares(Strips{s, t}); });
    });
    double sum = 0;
    for (index_t task = 0; task < pairs; ++task) sum += slots[task];
    return std::sqrt(sum);
  }

  /// Returns ||A'A - R'R||, for R alone.
  double r_residual() const {
    const double each = entries(r_rows, width * width);
    return norm_of(each, [&](Strips at) {
      alignas(64) double sums[4][width * width] = {};
      const double* a_gram = sums[0];
      if (layout.keeps_a) {
        add_square(x, layout.x_strip_size, rows_added, at, sums[0], sums[1]);
      } else {
        a_gram = gram + square_at(at.s, at.t);
      }
      const index_t rows = r_is_upper ? std::min(r_rows, (at.s + 1) * width) : r_rows;
      add_square(r, layout.r_strip_size, rows, at, sums[2], sums[3]);
      return square_squares(at, a_gram, sums[2], 0);
    });
  }

  /// Returns ||I - Q'Q||. The rounding errors of this measurement must not put a float64 matrix
  /// above its bar.
  double orthogonality() const {
    const double norm = norm_of(width * width, [&](Strips at) {
      return square_squares(at, gram + square_at(at.s, at.t), nullptr, 1);
    });
    const index_t columns = is_complex ? n / 2 : n;
    if (!is_double || !strips::needs_exact_orthogonality(m, columns, norm)) return norm;
    double squares = 0;
    for (index_t i = 0; is_complex && i < layout.x_columns; i += 2) {
      for (index_t j = i; j < layout.x_columns; j += 2) {
        const double re = exact_product(i, j, i == j ? -1 : 0) + exact_product(i + 1, j + 1, 0);
        const double im = exact_product(i, j + 1, 0) - exact_product(i + 1, j, 0);
        squares += (i == j ? 1 : 2) * (re * re + im * im);
      }
    }
    if (is_complex) return std::sqrt(squares);
    for (index_t i = 0; i < layout.x_columns; ++i) {
      for (index_t j = i; j < layout.x_columns; ++j) {
        const double entry = exact_product(i, j, i == j ? -1 : 0);
        squares += (i == j ? 1 : 2) * entry * entry;
      }
    }
    return std::sqrt(squares);
  }

  /// Returns `sum` and entry (i, j) of Q'Q as if computed in twice the precision. Source: Ogita,
  /// Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005), algorithm Dot2.
  double exact_product(index_t i, index_t j, double sum) const {
    const auto column = [&](index_t c) { return x + c / width * layout.x_strip_size + c % width; };
    const double *left = column(i), *right = column(j);
    double rest = 0;
    for (index_t row = 0; row < rows_added; ++row) {
      const double y = left[row * width], z = right[row * width], product = y * z;
      const double next = sum + product, added = next - sum;
      rest += std::fma(y, z, -product) + ((sum - (next - added)) + (product - added));
      sum = next;
    }
    return sum + rest;
  }

  const strips::Kernels& kernels = strips::best_kernels();
  bool is_complex, is_empty, has_q;
  index_t m, k, n, r_rows;  // n and r_rows as they are packed, in real numbers
  int scale = 0, threads = 1;
  Scaling scaling;
  bool is_wide;  // the errors come from all rows of A and from R where it is
  const void* stored_r = nullptr;
  index_t ld_of_r = 0;
  Errors of_all_rows;
  Layout layout;
  HostMemory memory;
  double *gram = nullptr, *lost = nullptr;  // X'X in squares, and what rounding of its sums lost
  double *x, *r;                            // packed
  double* a_tiles = nullptr;                // for every thread
  double* slots = nullptr;                  // what each task found
  CompensatedSum norm_a, residual;
  double lower = 0, diagonal_ratio = 0;
  bool is_double = true, r_is_upper = true;
  Batch<double> embedded_r;                      // of complex matrices with Q
  bool is_cleared = false, is_one_tile = false;  // the state of X'X
  strips::Runs runs;
  index_t rows_added = 0;
};

ErrorMeter::ErrorMeter(index_t m, index_t n, index_t q_cols, index_t r_rows, int most_threads,
                       bool is_complex)
    : state_(std::make_unique<State>(m, n, q_cols, r_rows, most_threads, is_complex)) {}
ErrorMeter::~ErrorMeter() = default;
ErrorMeter::ErrorMeter(ErrorMeter&&) noexcept = default;

void ErrorMeter::use_threads(int threads) {
  state_->threads = std::clamp(threads, 1, state_->layout.threads);
}

int ErrorMeter::scale() const { return state_->scale; }

index_t ErrorMeter::tile_rows() { return call_rows; }

std::size_t ErrorMeter::workspace_bytes(index_t m, index_t n, index_t q_cols, index_t r_rows,
                                        int most_threads, bool is_complex) {
  if (q_cols == 0 && is_very_wide(m, n)) return wide_errors_bytes(m, is_complex);
  const Layout layout = layout_of(m, n, q_cols, r_rows, most_threads, is_complex);
  const index_t embedded = is_complex && q_cols > 0 ? 4 * r_rows * n : 0;
  return sizeof(double) * static_cast<std::size_t>(layout.size() + embedded);
}

template <class T>
void ErrorMeter::start(MatrixView<const T> r, int scale) {
  state_->scale = scale;
  state_->stored_r = r.data;
  state_->ld_of_r = r.ld;
  if (!state_->is_wide) state_->start(r);
}

template <class T>
void ErrorMeter::add_rows(MatrixView<const T> a, MatrixView<const T> q) {
  State& s = *state_;
  if (s.is_wide) {
    const MatrixView<const T> r{static_cast<const T*>(s.stored_r), s.r_rows, a.cols, s.ld_of_r};
    s.of_all_rows = wide_errors(a, r, s.scale);
    return;
  }
  if (s.layout.x_columns == 0) return;  // rows without entries, of any number
  const index_t at_once = std::max<index_t>(s.layout.rows, 1);
  for (index_t i = 0; i < a.rows; i += at_once) {
    const index_t rows = std::min(at_once, a.rows - i);
    s.add_slab<Real<T>>(interleaved(a.row_block(i, rows)),
                        interleaved(s.has_q ? q.row_block(i, rows) : q));
  }
}

Errors ErrorMeter::finish() {
  State& s = *state_;
  if (s.is_wide) return s.of_all_rows;
  if (s.rows_added == 0) s.clear_gram();
  Errors errors;
  errors.scale = s.scale;
  errors.norm = std::sqrt(s.norm_a.sum);
  double residual = std::sqrt(s.residual.sum), unit_of_residual = errors.norm;
  if (s.has_q) {
    errors.orthogonality = s.orthogonality();
  } else {
    residual = s.is_empty ? 0 : s.r_residual();
    unit_of_residual = s.norm_a.sum;
    if (s.is_empty) errors.orthogonality = 0;  // a Q without columns is orthonormal
  }
  errors.residual = strips::relative(residual, unit_of_residual);
  errors.lower = strips::relative(std::sqrt(s.lower), errors.norm);
  errors.diagonal_ratio = s.diagonal_ratio;
  return errors;
}

std::vector<double> ErrorMeter::sums() const {
  const State& s = *state_;
  std::vector<double> all{s.norm_a.sum, s.residual.sum};
  all.insert(all.end(), s.gram, s.gram + s.layout.gram_size());
  return all;
}

std::size_t ErrorMeter::number_of_sums(index_t m, index_t n, index_t q_cols, bool is_complex) {
  return 2 + static_cast<std::size_t>(layout_of(m, n, q_cols, 0, 1, is_complex).gram_size());
}

void ErrorMeter::add_sums(std::span<const double> sums) {
  State& s = *state_;
  s.norm_a.add(sums[0]);
  s.residual.add(sums[1]);
  s.clear_gram();
  for (index_t i = 0; i < s.layout.gram_size(); ++i) {
    const double corrected = sums[static_cast<std::size_t>(i) + 2] - s.lost[i];
    const double next = s.gram[i] + corrected;
    s.lost[i] = (next - s.gram[i]) - corrected;
    s.gram[i] = next;
  }
}

#define QRTOOL_FOR(T)                                        \
  template void ErrorMeter::start(MatrixView<const T>, int); \
  template void ErrorMeter::add_rows(MatrixView<const T>, MatrixView<const T>);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
