// SPDX-License-Identifier: Apache-2.0
// ratios.cpp: measures a factorization tile by tile (compare LAPACK's TESTING/LIN/dqrt01).
#include "core/ratios.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <exception>
#include <limits>

#include "core/cpu/check/error_kernel.hpp"
#include "core/cpu/instruction_sets.hpp"
#include "core/cpu/reference/householder.hpp"

namespace qrtool {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Kahan's sum. A plain sum of many equal terms (a column of 10^6 equal entries) has a bias that is
/// larger than the bar.
struct CompensatedSum {
  double sum = 0, compensation = 0;

  void add(double term) {
    const double corrected = term - compensation;
    const double next = sum + corrected;
    compensation = (next - sum) - corrected;
    sum = next;
  }
};

/// The number of rows up to which a whole matrix is one tile.
constexpr index_t few_rows = 32;

/// More rows make the products faster; fewer rows keep the error of the plain sum within a tile far
/// below the bar, even where all its terms are equal and their roundings add up. With one tile for
/// the 130 rows of a constant 130 x 65 matrix the measured error was 1.2 times its bar.
index_t choose_tile_rows(index_t m, index_t n) {
  if (m <= few_rows) return few_rows;  // measured again from the tile where it is close to its bar
  return std::clamp<index_t>(std::min(m, n) / 2, 16, 256);
}

/// The part of its bar from which the orthogonality of a small float64 matrix is measured again
/// without rounding errors. Those of a plain sum are up to 0.05 of the bar at 16 rows.
constexpr double almost_above = 0.75;

/// The number of rows whose products are added in a plain sum before Kahan's sum takes over. Equal
/// terms bias a plain sum by up to its length in units of float64. That is negligible compared with
/// errors of float32. In float64 the error of Q of a constant 450 x 450 matrix appeared six times
/// too large with 256 rows, and a quarter too large with 32.
template <class T>
constexpr index_t plain_rows = sizeof(T) == 4 ? 256 : 32;

/// Computes x 2^-scale with two factors, since 2^-scale overflows for denormal data.
struct Scaling {
  double half, rest;
  explicit Scaling(int scale)
      : half(std::ldexp(1.0, -(scale / 2))), rest(std::ldexp(1.0, -(scale - scale / 2))) {}
  double operator()(double x) const { return x * half * rest; }
};

template <class T>
void copy_scaled(MatrixView<const T> from, const Scaling& scaling, Eigen::Map<RowMatrix>& to) {
  for (index_t i = 0; i < from.rows; ++i) {
    const T* source = from.data + i * from.ld;
    double* target = to.data() + i * to.cols();
    for (index_t j = 0; j < from.cols; ++j) target[j] = scaling(static_cast<double>(source[j]));
  }
}

}  // namespace

std::span<const errors::Kernels* const> errors::kernels() {
#ifdef QRTOOL_X86_KERNELS
  static constexpr std::array<const Kernels*, 3> all{&avx512_kernels, &avx2_kernels,
                                                     &generic_kernels};
  return std::span(all).subspan(unsupported_x86_sets());
#else
  static constexpr std::array<const Kernels*, 1> all{&generic_kernels};
  return all;
#endif
}

Bars standard_bars(index_t m, index_t n, Precision precision, const Errors& errors) {
  const auto rows = static_cast<double>(m), k = static_cast<double>(std::min(m, n));
  const double bar = precision.u * std::min(std::max(rows, 16.0), 30 * k);
  // Rounding each entry to a denormal number can make an error of sqrt(mn) denormals.
  const double rounding = std::ldexp(std::sqrt(rows * static_cast<double>(n)),
                                     precision.denormal_exponent - errors.scale);
  const double residual = errors.norm > 0 ? bar + rounding / errors.norm : bar;
  return {residual, bar, rows * precision.u};
}

Bars m_eps_bars(index_t m) {
  const double bar = static_cast<double>(m) * 0x1p-23;
  return {bar, bar, bar};
}

Status judge(const Errors& errors, const Bars& bars, bool has_q) {
  const bool ok = errors.residual <= bars.residual && errors.lower <= bars.lower &&
                  (!has_q || errors.orthogonality <= bars.orthogonality);
  return ok ? Status::ok : Status::above_bar;
}

void enter_errors(const Problem& problem, const Errors& errors, MatrixReport& report) {
  const Bars bars = standard_bars(problem.m, problem.n, precision_of(problem), errors);
  report.residual = errors.residual;
  report.orthogonality = errors.orthogonality;
  report.lower = errors.lower;
  report.diagonal_ratio = errors.diagonal_ratio;
  report.status = judge(errors, bars, problem.mode != Mode::r);
}

int Magnitude::scale() const {
  int exponent = 0;
  if (finite) std::frexp(largest, &exponent);
  return exponent;
}

void Magnitude::include(const Magnitude& other) {
  largest = std::max(largest, other.largest);
  finite = finite && other.finite;
}

template <class T>
Magnitude magnitude_of(MatrixView<const T> a) {
  const errors::Kernels& kernels = *errors::kernels().front();
  const bool is_packed = a.ld == a.cols;
  const index_t rows = is_packed ? std::min<index_t>(a.rows, 1) : a.rows;
  const index_t cols = is_packed ? a.rows * a.cols : a.cols;
  std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t> largest = 0;
  for (index_t i = 0; i < rows; ++i) {
    const T* row = a.data + i * a.ld;
    if constexpr (sizeof(T) == 4) {
      largest = kernels.largest_single(row, cols, largest);
    } else {
      largest = kernels.largest_double(row, cols, largest);
    }
  }
  const T value = std::bit_cast<T>(largest);
  return {static_cast<double>(value), std::isfinite(value)};
}

/// The sizes of the padded matrices that a meter works in. They follow one another in its memory;
/// sizes count doubles.
struct Layout {
  /// Rounds up to whole units, and avoids multiples of 128, with which the entries of a column
  /// would compete for few sets of the cache.
  static index_t padded(index_t size) {
    const index_t whole = (size + errors::unit - 1) / errors::unit * errors::unit;
    return whole > 0 && whole % 128 == 0 ? whole + errors::unit : whole;
  }

  Layout(index_t m, index_t n, index_t q_cols, index_t all_r_rows)
      : keeps_a(q_cols == 0 && m < n),
        gram_columns(q_cols > 0 ? q_cols : n),
        tile_rows(choose_tile_rows(m, n)),
        gram(keeps_a ? 0 : padded(gram_columns)),
        columns(padded(n)),
        q_columns(padded(q_cols)),
        r_rows(padded(all_r_rows)),
        rows(padded(std::max<index_t>(1, keeps_a ? m : std::min(tile_rows, m)))) {}

  index_t size() const { return 4 * gram * gram + r_rows * columns + rows * (columns + q_columns); }

  /// A'A of a wide matrix is larger than A and R. Its entries are computed one after another from
  /// all rows of A, and none is stored.
  bool keeps_a;
  index_t gram_columns, tile_rows, gram, columns, q_columns, r_rows, rows;
};

struct ErrorMeter::State {
  using Padded = Eigen::Map<RowMatrix>;

  State(index_t all_rows, index_t all_columns, index_t q_cols, index_t r_rows)
      : is_empty(std::min(all_rows, all_columns) == 0),
        has_q(q_cols > 0),
        m(all_rows),
        k(std::min(all_rows, all_columns)),
        n(all_columns),
        layout(m, n, q_cols, r_rows),
        memory(allocate_host(static_cast<std::size_t>(layout.size()) * sizeof(double))),
        gram(take(layout.gram, layout.gram)),
        compensation(take(layout.gram, layout.gram)),
        r_gram(take(layout.gram, layout.gram)),
        r_compensation(take(layout.gram, layout.gram)),
        r(take(layout.r_rows, layout.columns)),
        a_tile(take(layout.rows, layout.columns)),
        q_tile(take(layout.rows, layout.q_columns)) {}

  Padded take(index_t rows, index_t cols) {
    Padded matrix(reinterpret_cast<double*>(memory.get()) + taken, rows, cols);
    taken += rows * cols;
    matrix.setZero();
    return matrix;
  }

  void start_norms() {
    norm_a = residual = {};
    gram.setZero();
    compensation.setZero();
    lower = 0;
    for (index_t i = 1; i < r.rows(); ++i) {
      lower += r.row(i).head(std::min<index_t>(i, n)).squaredNorm();
    }
    const Eigen::ArrayXd diagonal = r.diagonal().head(k).array().abs();
    const double largest = diagonal.size() > 0 ? diagonal.maxCoeff() : 0;
    diagonal_ratio = largest > 0 ? diagonal.minCoeff() / largest : 0;
  }

  /// Adds X'X of `rows` rows of X, beginning with row `begin`. All entries left of column `first`
  /// are zero.
  void add_gram(const Padded& x, index_t begin, index_t rows, index_t first,
                const errors::Gram& sums) const {
    for (index_t i = 0; i < rows; i += summed_rows) {
      kernels.add_gram(x.row(begin + i).data(), std::min(summed_rows, rows - i), x.cols(), first,
                       sums);
    }
  }

  /// The place of the next rows of A in a_tile: below those that are kept.
  Padded next_rows() {
    return {a_tile.row(layout.keeps_a ? rows_in_tile : 0).data(), layout.tile_rows, a_tile.cols()};
  }

  /// Adds ||A||^2, ||A - QR||^2 and Q'Q of the first `rows` rows of the tiles; without Q, A'A.
  void add_tile(index_t rows) {
    norm_a.add(next_rows().topRows(rows).squaredNorm());
    rows_in_tile = layout.keeps_a ? rows_in_tile + rows : rows;
    if (!has_q) {
      if (!layout.keeps_a) add_gram(a_tile, 0, rows, 0, {gram.data(), compensation.data()});
      return;
    }
    const index_t all = (rows + errors::unit - 1) / errors::unit * errors::unit;
    a_tile.middleRows(rows, all - rows).setZero();
    q_tile.middleRows(rows, all - rows).setZero();
    add_gram(q_tile, 0, rows, 0, {gram.data(), compensation.data()});
    residual.add(kernels.residual_squares({.a = a_tile.data(),
                                           .q = q_tile.data(),
                                           .r = r.data(),
                                           .rows = all,
                                           .columns = a_tile.cols(),
                                           .inner = layout.gram_columns,
                                           .q_ld = q_tile.cols(),
                                           .is_upper = lower == 0}));
  }

  /// Forms A'A - R'R, by tiles of R, where there is no Q.
  void subtract_r_gram() {
    r_gram.setZero();
    r_compensation.setZero();
    for (index_t i = 0; i < r.rows(); i += layout.tile_rows) {
      add_gram(r, i, std::min(layout.tile_rows, r.rows() - i), lower == 0 ? i : 0,
               {r_gram.data(), r_compensation.data()});
    }
    gram -= r_gram;
  }

  /// ||A'A - R'R||, where there is no Q.
  double r_residual() {
    if (!layout.keeps_a) {
      subtract_r_gram();
      return gram_norm();
    }
    return std::sqrt(kernels.gram_difference_squares({.a = a_tile.data(),
                                                      .r = r.data(),
                                                      .a_rows = rows_in_tile,
                                                      .r_rows = r.rows(),
                                                      .columns = layout.columns,
                                                      .run = summed_rows,
                                                      .is_upper = lower == 0}));
  }

  /// ||I - Q'Q||. The rounding errors of this measurement must not put a float64 matrix above its
  /// bar; a matrix of more rows than a tile is much better than its bar.
  double orthogonality() {
    gram.diagonal().head(layout.gram_columns).array() -= 1;
    const double norm = gram_norm();
    const double bar = standard_bars(m, n, double_precision, {}).orthogonality;
    const bool is_double = summed_rows == plain_rows<double>;
    if (!is_double || rows_in_tile != m || !(norm > almost_above * bar)) return norm;
    for (index_t i = 0; i < layout.gram_columns; ++i) {
      for (index_t j = i; j < layout.gram_columns; ++j) gram(i, j) = exact_product(i, j);
    }
    return gram_norm();
  }

  /// Entry (i, j) of Q'Q - I, as if in twice the precision. Source: Ogita, Rump, Oishi, "Accurate
  /// sum and dot product", SIAM J. Sci. Comput. 26 (2005), algorithm Dot2.
  double exact_product(index_t i, index_t j) const {
    double sum = i == j ? -1 : 0, lost = 0;
    for (index_t row = 0; row < rows_in_tile; ++row) {
      const double x = q_tile(row, i), y = q_tile(row, j), product = x * y;
      const double next = sum + product, added = next - sum;
      lost += std::fma(x, y, -product) + ((sum - (next - added)) + (product - added));
      sum = next;
    }
    return sum + lost;
  }

  /// The Frobenius norm of the symmetric matrix whose upper half is in gram.
  double gram_norm() const {
    double sum = 0;
    for (index_t i = 0; i < layout.gram_columns; ++i) {
      const index_t right = layout.gram_columns - i - 1;
      sum += gram(i, i) * gram(i, i) + 2 * gram.row(i).segment(i + 1, right).squaredNorm();
    }
    return std::sqrt(sum);
  }

  const errors::Kernels& kernels = *errors::kernels().front();
  bool is_empty, has_q;
  index_t m, k, n;
  int scale = 0;
  Layout layout;
  HostMemory memory;
  index_t taken = 0;
  // r_gram and its compensation are used only where there is no Q.
  Padded gram, compensation, r_gram, r_compensation, r, a_tile, q_tile;
  CompensatedSum norm_a, residual;
  double lower = 0, diagonal_ratio = 0;
  index_t summed_rows = plain_rows<double>;
  index_t rows_in_tile = 0;  // of the matrix that start() began; all its rows where a_tile keeps A
};

ErrorMeter::ErrorMeter(index_t m, index_t n, index_t q_cols, index_t r_rows)
    : state_(std::make_unique<State>(m, n, q_cols, r_rows)) {}
ErrorMeter::~ErrorMeter() = default;
ErrorMeter::ErrorMeter(ErrorMeter&&) noexcept = default;

int ErrorMeter::scale() const { return state_->scale; }

index_t ErrorMeter::tile_rows() const { return state_->layout.tile_rows; }

index_t ErrorMeter::tile_rows(index_t m, index_t n) { return choose_tile_rows(m, n); }

std::size_t ErrorMeter::workspace_bytes(index_t m, index_t n, index_t q_cols, index_t r_rows) {
  return sizeof(double) * static_cast<std::size_t>(Layout(m, n, q_cols, r_rows).size());
}

template <class T>
void ErrorMeter::start(MatrixView<const T> r, int scale) {
  state_->scale = scale;
  state_->summed_rows = plain_rows<T>;
  state_->rows_in_tile = 0;
  copy_scaled(r, Scaling(scale), state_->r);
  state_->start_norms();
}

template <class T>
void ErrorMeter::add_rows(MatrixView<const T> a, MatrixView<const T> q) {
  const Scaling scaling(state_->scale), unscaled(0);
  const index_t tile_rows = state_->layout.tile_rows;
  for (index_t i = 0; i < a.rows; i += tile_rows) {
    const index_t rows = std::min(tile_rows, a.rows - i);
    auto a_tile = state_->next_rows();
    copy_scaled(a.row_block(i, rows), scaling, a_tile);
    if (state_->has_q) copy_scaled(q.row_block(i, rows), unscaled, state_->q_tile);
    state_->add_tile(rows);
  }
}

Errors ErrorMeter::finish() {
  State& s = *state_;
  Errors errors;
  errors.scale = s.scale;
  errors.norm = std::sqrt(s.norm_a.sum);
  double residual = std::sqrt(s.residual.sum), unit = errors.norm;
  if (s.has_q) {
    errors.orthogonality = s.orthogonality();
  } else {
    residual = s.r_residual();
    unit = s.norm_a.sum;
    if (s.is_empty) errors.orthogonality = 0;  // a Q without columns is orthonormal
  }
  // A = 0 must come back exactly: every other QR has an infinite relative error.
  const auto relative = [&](double error) {
    if (unit > 0 || std::isnan(error)) return error / unit;
    return error > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  };
  errors.residual = relative(residual);
  unit = errors.norm;
  errors.lower = relative(std::sqrt(s.lower));
  errors.diagonal_ratio = s.diagonal_ratio;
  return errors;
}

std::vector<double> ErrorMeter::sums() const {
  const State& s = *state_;
  std::vector<double> all{s.norm_a.sum, s.residual.sum};
  all.insert(all.end(), s.gram.data(), s.gram.data() + s.gram.size());
  return all;
}

std::size_t ErrorMeter::number_of_sums(index_t m, index_t n, index_t q_cols) {
  const index_t gram = Layout(m, n, q_cols, 0).gram;
  return 2 + static_cast<std::size_t>(gram * gram);
}

void ErrorMeter::add_sums(std::span<const double> sums) {
  State& s = *state_;
  s.norm_a.add(sums[0]);
  s.residual.add(sums[1]);
  for (index_t i = 0; i < s.gram.size(); ++i) {
    double &sum = s.gram.data()[i], &rest = s.compensation.data()[i];
    const double corrected = sums[static_cast<std::size_t>(i) + 2] - rest;
    const double next = sum + corrected;
    rest = (next - sum) - corrected;
    sum = next;
  }
}

namespace {

/// Calls keep(sums) for the sums of every part, in order.
template <class T, class Keep>
void for_each_part(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                   const RowParts& by, const ErrorMeter& total, Keep keep) {
  const index_t parts = (a.rows + by.rows - 1) / by.rows;
  const index_t tall = std::max(2 * by.rows, 2 * a.cols);  // has the tiles of a tall matrix
  std::exception_ptr failure;  // an exception must not leave the parallel region
#pragma omp parallel for num_threads(by.threads) schedule(dynamic, 1) ordered if (parts > 1)
  for (index_t part = 0; part < parts; ++part) {
    std::vector<double> sums;
    try {
      ErrorMeter meter(tall, a.cols, q.cols, r.rows);
      const index_t first = part * by.rows, count = std::min(by.rows, a.rows - first);
      meter.start(r, total.scale());
      meter.add_rows(a.row_block(first, count), q.data == nullptr ? q : q.row_block(first, count));
      sums = meter.sums();
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
#pragma omp ordered
    if (!sums.empty()) keep(sums);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

template <class T>
void add_rows_by_parts(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                       const RowParts& parts, ErrorMeter& total) {
  // The rows of a wide matrix without Q stay together, because its A'A is formed at the end.
  if (q.data == nullptr && a.rows < a.cols) return total.add_rows(a, q);
  for_each_part(a, q, r, parts, total, [&](std::span<const double> sums) { total.add_sums(sums); });
}

template <class T>
std::vector<double> sums_of_parts(MatrixView<const T> a, MatrixView<const T> q,
                                  MatrixView<const T> r, const RowParts& parts,
                                  const ErrorMeter& meter) {
  std::vector<double> all;
  for_each_part(a, q, r, parts, meter, [&](std::span<const double> sums) {
    all.insert(all.end(), sums.begin(), sums.end());
  });
  return all;
}

void add_sums_of_parts(std::span<const double> sums, ErrorMeter& meter) {
  const std::size_t each = meter.sums().size();
  for (; !sums.empty(); sums = sums.subspan(each)) meter.add_sums(sums.first(each));
}

template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<double> q) {
  const index_t k = std::min(v.rows, v.cols);
  householder::Matrix<double> vr(v.rows, k), formed(q.rows, q.cols);
  householder::Vector<double> coefficients(k);
  for (index_t j = 0; j < k; ++j) {
    for (index_t i = 0; i < v.rows; ++i) vr(i, j) = static_cast<double>(v(i, j));
    coefficients(j) = static_cast<double>(tau[j]);
  }
  householder::form_q<double>(vr, coefficients, formed);
  for (index_t i = 0; i < q.rows; ++i) {
    for (index_t j = 0; j < q.cols; ++j) q(i, j) = formed(i, j);
  }
}

#define QRTOOL_FOR(T)                                                                            \
  template Magnitude magnitude_of(MatrixView<const T>);                                          \
  template void ErrorMeter::start(MatrixView<const T>, int);                                     \
  template void ErrorMeter::add_rows(MatrixView<const T>, MatrixView<const T>);                  \
  template void form_q_from_reflectors(MatrixView<const T>, const T*, MatrixView<double>);       \
  template void add_rows_by_parts(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, \
                                  const RowParts&, ErrorMeter&);                                 \
  template std::vector<double> sums_of_parts(MatrixView<const T>, MatrixView<const T>,           \
                                             MatrixView<const T>, const RowParts&,               \
                                             const ErrorMeter&);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
#undef QRTOOL_FOR

}  // namespace qrtool
