// SPDX-License-Identifier: Apache-2.0
// ratios.cpp: the bars, and measuring in parts. core/error_meter.cpp measures.
#include "core/ratios.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "core/cpu/check/scan_kernel.hpp"
#include "core/cpu/instruction_sets.hpp"
#include "core/cpu/reference/householder.hpp"
#include "core/parallel.hpp"

namespace qrtool {

std::span<const scan::Kernels* const> scan::kernels() {
#ifdef QRTOOL_X86_KERNELS
  static constexpr std::array<const Kernels*, 3> all{&avx512_scan, &avx2_scan, &generic_scan};
  return std::span(all).subspan(unsupported_x86_sets());
#else
  static constexpr std::array<const Kernels*, 1> all{&generic_scan};
  return all;
#endif
}

namespace {

/// sqrt(mn) denormals over ||A||. It is 0 where it is negligible beside the bar of any shape, as
/// for all float64 numbers of common size: arithmetic with denormals takes as long as measuring a
/// small matrix.
double rounding_to_denormals(double entries, Precision precision, const Errors& errors) {
  constexpr int negligible_exponent = -300;
  constexpr double least_norm = 0x1p-100;
  if (!(errors.norm > 0)) return 0;
  const int exponent = precision.denormal_exponent - errors.scale;
  if (exponent < negligible_exponent && errors.norm > least_norm) return 0;
  return std::ldexp(std::sqrt(entries), exponent) / errors.norm;
}

}  // namespace

Bars standard_bars(index_t m, index_t n, Precision precision, const Errors& errors) {
  const auto rows = static_cast<double>(m), k = static_cast<double>(std::min(m, n));
  const double bar = precision.u * std::min(std::max(rows, 16.0), 30 * k);
  // Rounding each entry to a denormal number can make an error of sqrt(mn) denormals.
  const double residual =
      bar + rounding_to_denormals(rows * static_cast<double>(n), precision, errors);
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
  report.bars = bars;
  report.status = judge(errors, bars, problem.mode != Mode::r);
}

Errors errors_of(const MatrixReport& line) {
  return {.residual = line.residual,
          .orthogonality = line.orthogonality,
          .lower = line.lower,
          .diagonal_ratio = line.diagonal_ratio,
          .scale = line.scale};
}

void judge_again(const Problem& problem, MatrixReport& line) {
  const double for_denormals = line.bars.residual - line.bars.orthogonality;
  line.bars = standard_bars(problem.m, problem.n, precision_of(problem), {});
  line.bars.residual += for_denormals;
  line.status = judge(errors_of(line), line.bars, problem.mode != Mode::r);
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
  const scan::Kernels& kernels = *scan::kernels().front();
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

namespace {

/// Calls keep(sums) for the sums of every part, in order.
template <class T, class Keep>
void for_each_part(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                   const RowParts& by, const ErrorMeter& total, Keep keep) {
  const index_t parts = (a.rows + by.rows - 1) / by.rows;
  const index_t tall = std::max(2 * by.rows, 2 * a.cols);  // has the tiles of a tall matrix
  std::mutex mutex;
  std::map<index_t, std::vector<double>> waiting;  // for parts before them
  index_t next = 0;
  parallel_for(parts, by.threads, [&](index_t part, int) {
    ErrorMeter meter(tall, a.cols, q.cols, r.rows);
    const index_t first = part * by.rows, count = std::min(by.rows, a.rows - first);
    meter.start(r, total.scale());
    meter.add_rows(a.row_block(first, count), q.data == nullptr ? q : q.row_block(first, count));
    std::vector<double> sums = meter.sums();
    const std::lock_guard lock(mutex);
    waiting.emplace(part, std::move(sums));
    for (auto it = waiting.begin(); it != waiting.end() && it->first == next; ++next) {
      keep(it->second);
      it = waiting.erase(it);
    }
  });
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
