// SPDX-License-Identifier: Apache-2.0
// error_probe.cpp: products with random vectors in tasks that any thread may take. All products are
// in float64. R comes first, then A and Q, some rows at a time:
//
//     rows of R         W := -R X
//     rows of A, Q      (QR - A) X = -A X - Q W, and Z := -Q Y      (without Q: Z := -A X)
//     columns of Q      the sum of Q'Z over all rows, plus Y        (without Q: A'Z - R'W)
//
// An entry is made of plain sums of 32 products, which are added to each other: its rounding error
// of some (n / 32 + 32) 2^-53 is far below the bar of m u wherever a probe pays.
#include "core/measure/error_probe.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/machine/host.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/strips.hpp"

namespace qrtool {
namespace {

using strips::ceiling, strips::entries, strips::pack, strips::strip_size_of;
using strips::CompensatedSum, strips::Scaling;
using strips::width;

constexpr std::uint64_t probe_seed = 0x9e0be, x_stream = 2, y_stream = 3;
static_assert(residual_vectors <= width && orthogonality_vectors == width);

/// The number of products in a plain sum.
constexpr index_t run = 32;
/// The rows, and the strips of columns, that are packed at a time. They stay in the second-level
/// cache.
constexpr index_t block_rows = 128, block_strips = 4;
static_assert(block_rows == block_strips * width);  // as many tasks for rows as for columns
/// The size of the products of block_rows rows with 32 vectors.
constexpr index_t product_size = block_rows * width;

/// The least number of columns for which the probe takes less than half of the meter's time
/// (AVX-512, 2026-11-22): it does 168 m n operations for a reduced QR, and the meter 2 m n^2.
constexpr index_t least_columns = 192;

/// Takes room for 32 vectors from a workspace; they lie side by side, 32 numbers for each row.
double* take_vectors(double*& at, index_t rows) { return std::exchange(at, at + rows * width); }

}  // namespace

struct ErrorProbe::State {
  State(index_t most_rows, index_t all_columns, index_t columns_of_q, index_t all_r_rows,
        int most_threads)
      : m(most_rows),
        n(all_columns),
        q_cols(columns_of_q),
        r_rows(all_r_rows),
        threads(std::clamp(most_threads, 1, machine_cores())),
        most(threads),
        memory(allocate_host(bytes(m, n, q_cols, r_rows, most))),
        diagonal(static_cast<std::size_t>(std::min(r_rows, n))) {
    double* at = reinterpret_cast<double*>(memory.get());
    x = take_vectors(at, padded(n));
    w = take_vectors(at, padded(r_rows));
    y = take_vectors(at, padded(q_cols));
    z = take_vectors(at, padded(m));
    sum = take_vectors(at, sum_rows(n, q_cols));
    lost = take_vectors(at, sum_rows(n, q_cols));
    blocks = std::exchange(at, at + most * block_size());
    slots = at;
    fill(x, n, residual_vectors, x_stream);
    fill(y, q_cols, orthogonality_vectors, y_stream);
  }

  static index_t padded(index_t rows) { return ceiling(rows, strips::unit) * strips::unit; }
  /// Returns the size of a task's room: packed numbers, and then the products of their rows.
  static index_t block_size() {
    return block_strips * strip_size_of(2 * block_rows) + product_size;
  }
  /// Returns the columns of Q, or of A if there is no Q, rounded up to whole tasks.
  static index_t sum_rows(index_t n, index_t q_cols) {
    return ceiling(q_cols > 0 ? q_cols : n, block_strips * width) * block_strips * width;
  }
  static index_t tasks(index_t m, index_t n, index_t q_cols, index_t r_rows) {
    return ceiling(std::max({m, n, q_cols, r_rows}), block_rows);
  }
  static std::size_t bytes(index_t m, index_t n, index_t q_cols, index_t r_rows, int threads) {
    const index_t vectors =
        padded(n) + padded(r_rows) + padded(q_cols) + padded(m) + 2 * sum_rows(n, q_cols);
    const index_t size = width * vectors + threads * block_size() + 2 * tasks(m, n, q_cols, r_rows);
    return static_cast<std::size_t>(size) * sizeof(double);
  }

  static void fill(double* vectors, index_t rows, index_t columns, std::uint64_t stream) {
    std::fill_n(vectors, padded(rows) * width, 0.0);
    for (index_t i = 0; i < rows; ++i)
      for (index_t l = 0; l < columns; ++l)
        vectors[i * width + l] =
            normal(probe_seed, stream, static_cast<std::uint64_t>(i * columns + l));
  }

  double* block_of(int worker) const { return blocks + worker * block_size(); }
  double* product_of(int worker) const {
    return block_of(worker) + block_strips * strip_size_of(2 * block_rows);
  }

  /// Return the first row of a task, and how many rows it has.
  static index_t first_of(index_t task) { return task * block_rows; }
  static index_t rows_of(index_t task, index_t rows) {
    return std::min(block_rows, rows - first_of(task));
  }

  /// to := to - M V for some rows M of a matrix, from column `first` on, and `vectors` columns of
  /// V. Returns the sums of the squares of M and of `to`.
  struct Squares {
    double packed = 0, product = 0;
  };
  template <class T>
  Squares subtract(MatrixView<const T> from, index_t first, const Scaling& scale_of_m,
                   const double* v, index_t vectors, double* packed, double* to) const {
    const index_t strip_size = strip_size_of(block_rows);
    Squares squares;
    for (index_t j = first; j < from.cols; j += block_strips * width) {
      const index_t columns = std::min(block_strips * width, from.cols - j);
      squares.packed += pack({.from = from.data + j,
                              .ld = from.ld,
                              .rows = from.rows,
                              .columns = columns,
                              .half = scale_of_m.half,
                              .rest = scale_of_m.rest,
                              .to = packed,
                              .strip_size = strip_size});
      squares.product = kernels.residual_squares({.q = packed,
                                                  .q_strip_size = strip_size,
                                                  .r = v + j * width,
                                                  .r_strip_size = 0,
                                                  .a = to,
                                                  .a_strip_size = 0,
                                                  .rows = padded(from.rows),
                                                  .columns = vectors,
                                                  .inner = columns,
                                                  .first_column = 0,
                                                  .run = run,
                                                  .is_upper = false});
    }
    return squares;
  }

  template <class T>
  void start(MatrixView<const T> r, int scale_of_a) {
    scale = scale_of_a;
    scaling = Scaling(scale);
    norm_a = residual = {};
    for (std::size_t i = 0; i < diagonal.size(); ++i)
      diagonal[i] = static_cast<double>(r(static_cast<index_t>(i), static_cast<index_t>(i)));
    multiply_r(r);
    std::fill_n(sum, sum_rows(n, q_cols) * width, 0.0);
    std::fill_n(lost, sum_rows(n, q_cols) * width, 0.0);
    if (q_cols == 0) subtract_columns_of_r(r);
  }

  template <class T>
  void multiply_r(MatrixView<const T> r) {
    const index_t all = ceiling(r_rows, block_rows);
    std::fill_n(w, padded(r_rows) * width, 0.0);
    strips::for_tasks(all, entries(r_rows, n) * residual_vectors, threads,
                      [&](index_t task, int worker) {
                        const index_t row = first_of(task), rows = rows_of(task, r_rows);
                        slots[task] = squares_below_diagonal(r, row, rows);
                        const index_t first = slots[task] == 0 ? row : 0;
                        if (first < n)
                          subtract(r.row_block(row, rows), first, scaling, x, residual_vectors,
                                   block_of(worker), w + row * width);
                      });
    lower = 0;
    for (index_t task = 0; task < all; ++task) lower += slots[task];
  }

  template <class T>
  double squares_below_diagonal(MatrixView<const T> r, index_t first, index_t rows) const {
    double squares = 0;
    for (index_t i = first; i < first + rows; ++i) {
      const T* row = r.data + i * r.ld;
      const index_t end = std::min(i, r.cols);
      // Our own R has zeros there, as most others. The compiler makes vectors of a loop on
      // integers.
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      Bits bits = 0;
      for (index_t j = 0; j < end; ++j) bits |= std::bit_cast<Bits>(row[j]) << 1;
      if (bits == 0) continue;
      for (index_t j = 0; j < end; ++j) {
        const double entry = static_cast<double>(row[j]) * scaling.half * scaling.rest;
        squares += entry * entry;
      }
    }
    return squares;
  }

  /// Adds at most m rows.
  template <class T>
  void multiply_rows(MatrixView<const T> a, MatrixView<const T> q) {
    const index_t all = ceiling(a.rows, block_rows);
    const double operations =
        entries(a.rows, n) * 2 * residual_vectors +
        entries(a.rows, q_cols) * 2 * (residual_vectors + orthogonality_vectors);
    std::fill_n(z, padded(a.rows) * width, 0.0);
    strips::for_tasks(all, operations, threads, [&](index_t task, int worker) {
      const index_t row = first_of(task), rows = rows_of(task, a.rows);
      double *packed = block_of(worker), *product = product_of(worker);
      const auto rows_of_a = a.row_block(row, rows);
      if (q_cols == 0) product = z + row * width;
      std::fill_n(product, padded(rows) * width, 0.0);
      const double norm =
          subtract(rows_of_a, 0, scaling, x, residual_vectors, packed, product).packed;
      slots[2 * task] = norm;
      if (q_cols == 0) return;
      const auto rows_of_q = q.row_block(row, rows);
      const auto of_r = MatrixView<const T>{rows_of_q.data, rows, r_rows, rows_of_q.ld};
      slots[2 * task + 1] = subtract(of_r, 0, {}, w, residual_vectors, packed, product).product;
      subtract(rows_of_q, 0, {}, y, orthogonality_vectors, packed, z + row * width);
    });
    for (index_t task = 0; task < all; ++task) {
      norm_a.add(slots[2 * task]);
      if (q_cols > 0) residual.add(slots[2 * task + 1]);
    }
  }

  /// sum += M'V for the columns of M beginning with `first`, at most 4 strips, and rows before
  /// `end`.
  template <class T>
  void sum_columns(MatrixView<const T> from, index_t first, index_t end, const Scaling& scale_of_m,
                   const double* v, double* packed) const {
    constexpr index_t rows_at_once = 2 * block_rows;
    const index_t strip_size = strip_size_of(rows_at_once);
    const index_t columns = std::min(block_strips * width, from.cols - first);
    for (index_t row = 0; row < end; row += rows_at_once) {
      const index_t rows = std::min(rows_at_once, end - row);
      pack({.from = from.data + row * from.ld + first,
            .ld = from.ld,
            .rows = rows,
            .columns = columns,
            .half = scale_of_m.half,
            .rest = scale_of_m.rest,
            .to = packed,
            .strip_size = strip_size});
      for (index_t s = 0; s * width < columns; ++s)
        kernels.add_gram({.v = packed + s * strip_size,
                          .c = v + row * width,
                          .rows = rows,
                          .v_columns = std::min(width, columns - s * width),
                          .c_columns = q_cols > 0 ? orthogonality_vectors : residual_vectors,
                          .run = run,
                          .on_diagonal = false,
                          .sum = sum + (first + s * width) * width,
                          .lost = lost + (first + s * width) * width});
    }
  }

  /// Calls body(first column, packed) for all columns of the sum.
  template <class Body>
  void for_columns(index_t rows, Body body) const {
    constexpr index_t at_once = block_strips * width;
    const index_t columns = q_cols > 0 ? q_cols : n;
    strips::for_tasks(ceiling(columns, at_once), entries(rows, columns) * 2 * orthogonality_vectors,
                      threads,
                      [&](index_t task, int worker) { body(task * at_once, block_of(worker)); });
  }

  /// Without Q the sum is A'A X - R'W, so the sign of W is changed first.
  template <class T>
  void subtract_columns_of_r(MatrixView<const T> r) {
    for (index_t i = 0; i < r_rows * width; ++i) w[i] = -w[i];
    for_columns(r_rows, [&](index_t first, double* packed) {
      const index_t end = first + block_strips * width;
      const index_t filled = lower == 0 ? std::min(r_rows, end) : r_rows;
      sum_columns(r, first, filled, scaling, w, packed);
    });
  }

  template <class T>
  void add_rows(MatrixView<const T> a, MatrixView<const T> q) {
    multiply_rows(a, q);
    for_columns(a.rows, [&](index_t first, double* packed) {
      q_cols > 0 ? sum_columns(q, first, a.rows, {}, z, packed)
                 : sum_columns(a, first, a.rows, scaling, z, packed);
    });
  }

  /// Returns ||(I - Q'Q) Y||^2, or ||(A'A - R'R) X||^2.
  double squares_of_columns() const {
    CompensatedSum squares;
    for (index_t i = 0; i < (q_cols > 0 ? q_cols : n); ++i)
      squares.add(squares_of(sum + i * width, q_cols > 0 ? y + i * width : nullptr,
                             q_cols > 0 ? orthogonality_vectors : residual_vectors));
    return squares.sum;
  }

  /// Returns ||x + y||^2 of rows of which only `columns` numbers count; y may be null.
  static double squares_of(const double* x, const double* y, index_t columns) {
    double squares = 0;
    for (index_t l = 0; l < columns; ++l) {
      const double entry = y == nullptr ? x[l] : x[l] + y[l];
      squares += entry * entry;
    }
    return squares;
  }

  const strips::Kernels& kernels = strips::best_kernels();
  index_t m, n, q_cols, r_rows;  // m: the rows of A and Q at a time
  int threads, most;
  HostMemory memory;
  std::vector<double> diagonal;  // of R
  double *x, *w, *y, *z;         // vectors: of n, r_rows, q_cols and m rows
  double *sum, *lost;            // Q'Z or A'Z - R'W so far, and what its rounding lost
  double* blocks;                // for every thread
  double* slots;                 // what each task found
  int scale = 0;
  Scaling scaling;
  CompensatedSum norm_a, residual;  // squares
  double lower = 0;
};

ErrorProbe::ErrorProbe(index_t m, index_t n, index_t q_cols, index_t r_rows, int most_threads)
    : state_(std::make_unique<State>(m, n, q_cols, r_rows, most_threads)) {}
ErrorProbe::~ErrorProbe() = default;
ErrorProbe::ErrorProbe(ErrorProbe&&) noexcept = default;

void ErrorProbe::use_threads(int threads) {
  state_->threads = std::clamp(threads, 1, state_->most);
}

bool ErrorProbe::pays(index_t m, index_t n, index_t q_cols) {
  return std::min({m, n, q_cols > 0 ? q_cols : n}) >= least_columns;
}

std::size_t ErrorProbe::workspace_bytes(index_t m, index_t n, index_t q_cols, index_t r_rows,
                                        int most_threads) {
  return State::bytes(m, n, q_cols, r_rows, std::clamp(most_threads, 1, machine_cores()));
}

template <class T>
void ErrorProbe::start(MatrixView<const T> r, int scale) {
  state_->start(r, scale);
}

template <class T>
void ErrorProbe::add_rows(MatrixView<const T> a, MatrixView<const T> q) {
  state_->add_rows(a, q);
}

Errors ErrorProbe::finish() {
  const State& s = *state_;
  Errors errors;
  errors.scale = s.scale;
  errors.norm = std::sqrt(s.norm_a.sum);
  double residual = s.residual.sum, norm = errors.norm;
  const double squares = s.squares_of_columns();
  if (s.q_cols > 0) {
    errors.orthogonality = std::sqrt(squares / orthogonality_vectors);
  } else {
    residual = squares;
    norm *= norm;
  }
  errors.residual = strips::relative(std::sqrt(residual / residual_vectors), norm);
  errors.lower = strips::relative(std::sqrt(s.lower), errors.norm);
  errors.diagonal_ratio =
      strips::diagonal_ratio_of(std::ssize(s.diagonal), [&](index_t i) { return s.diagonal[i]; });
  return errors;
}

Errors upper_bounds(const Errors& estimates) {
  Errors bounds = estimates;
  bounds.residual *= residual_factor;
  bounds.orthogonality *= orthogonality_factor;
  return bounds;
}

ErrorFinder::ErrorFinder(const Shape& s, Check check) : shape_(s), threads_(s.most_threads) {
  if (check == Check::probe && !s.is_complex)
    probe_.emplace(s.m, s.n, s.q_cols, s.r_rows, s.most_threads);
}

std::size_t ErrorFinder::workspace_bytes(const Shape& s, Check check) {
  if (check == Check::none) return 0;
  const std::size_t meter =
      ErrorMeter::workspace_bytes(s.m, s.n, s.q_cols, s.r_rows, s.most_threads, s.is_complex);
  if (check == Check::full || s.is_complex) return meter;
  return meter + ErrorProbe::workspace_bytes(s.m, s.n, s.q_cols, s.r_rows, s.most_threads);
}

void ErrorFinder::use_threads(int threads) {
  threads_ = threads;
  if (probe_) probe_->use_threads(threads);
}

template <class T>
Errors ErrorFinder::find(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                         int scale, const BarsOf& bars_of) {
  if constexpr (!is_complex_number<T>) {
    if (probe_) {
      const Errors estimates = probe_->estimate(a, q, r, scale);
      if (judge(upper_bounds(estimates), bars_of(estimates), shape_.q_cols > 0) == Status::ok)
        return estimates;
    }
  }
  const Shape& s = shape_;
  if (!meter_) meter_.emplace(s.m, s.n, s.q_cols, s.r_rows, s.most_threads, s.is_complex);
  meter_->use_threads(threads_);
  return meter_->measure(a, q, r, scale);
}

#define QRTOOL_FOR(T)                                        \
  template void ErrorProbe::start(MatrixView<const T>, int); \
  template void ErrorProbe::add_rows(MatrixView<const T>, MatrixView<const T>);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
#undef QRTOOL_FOR

#define QRTOOL_FOR(T)                                                                              \
  template Errors ErrorFinder::find(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, \
                                    int, const BarsOf&);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
