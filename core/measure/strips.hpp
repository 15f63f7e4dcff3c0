// SPDX-License-Identifier: Apache-2.0
// strips.hpp: what ErrorMeter and ErrorProbe share: packing a matrix in strips, tasks for several
// threads, and sums. Private to core.
#pragma once

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/batch.hpp"
#include "core/machine/openmp.hpp"
#include "core/measure/strip_kernel.hpp"
#include "core/report/ratios.hpp"

namespace qrtool::strips {

/// Kahan's sum. A plain sum of many equal terms has a bias that is larger than the bar.
struct CompensatedSum {
  double sum = 0, compensation = 0;

  void add(double term) {
    const double corrected = term - compensation;
    const double next = sum + corrected;
    compensation = (next - sum) - corrected;
    sum = next;
  }
};

/// 2^-scale, or two factors of it where 2^-scale overflows, as for denormal data.
struct Scaling {
  double half = 1, rest = 1;
  Scaling() = default;
  explicit Scaling(int scale) {
    constexpr int most = 1000;
    const int second = scale > most || scale < -most ? scale / 2 : 0;
    half = power(second - scale);
    rest = power(-second);
  }

  /// Returns 2^e for normal numbers. std::ldexp would take a tenth of the time of an 8 x 8 matrix.
  static double power(int e) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + e) << 52);
  }
};

inline const Kernels& best_kernels() { return *kernels().front(); }

inline double pack(const Rows<float>& rows) { return best_kernels().pack_single(rows); }
inline double pack(const Rows<double>& rows) { return best_kernels().pack_double(rows); }

inline index_t ceiling(index_t size, index_t part) { return (size + part - 1) / part; }

/// Returns the number of doubles in a strip. It has one row more than needed: rows of different
/// strips at a distance of a power of two would compete for few sets of a cache.
inline index_t strip_size_of(index_t rows) { return (ceiling(rows, unit) * unit + 1) * width; }

inline double entries(index_t rows, index_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

/// The number of operations for which another thread is worth its start.
inline constexpr double least_operations_per_thread = 4e6;

/// Calls body(task, worker) for every task, on as many of `threads` threads as `operations`
/// justify. The result of a task must not depend on its worker.
template <class Body>
void for_tasks(index_t tasks, double operations, int threads, Body body) {
  const double paying = operations / least_operations_per_thread;
  const int team = threads_for_region(paying < threads ? static_cast<int>(paying) : threads);
  if (team <= 1) {
    for (index_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
  for (index_t task = 0; task < tasks; ++task) body(task, omp_get_thread_num());
}

/// The products in a plain sum of Q'Q, and of A - QR. In float32 the errors of sums in float64 do
/// not matter.
struct Runs {
  index_t gram = 32, residual = 128;
};
inline Runs choose_runs(bool is_float64, index_t m, index_t n) {
  if (!is_float64) return {};
  const index_t bar_in_u = std::min(std::max<index_t>(m, 16), 30 * std::min(m, n));
  return bar_in_u < 48     ? Runs{.gram = 2, .residual = 8}
         : bar_in_u < 128  ? Runs{.gram = 4, .residual = 8}
         : bar_in_u < 256  ? Runs{.gram = 8, .residual = 16}
         : bar_in_u < 512  ? Runs{.gram = 16, .residual = 32}
         : bar_in_u < 1024 ? Runs{.gram = 32, .residual = 32}
                           : Runs{};
}

/// Whether the orthogonality of a float64 matrix of few rows is so close to its bar that it is
/// measured again in twice the precision.
inline bool needs_exact_orthogonality(index_t m, index_t n, double orthogonality) {
  constexpr index_t few_rows = 32;
  constexpr double almost_above = 0.75;
  const double bar = standard_bars(m, n, double_precision, {}).orthogonality;
  return m <= few_rows && orthogonality > almost_above * bar;
}

/// Returns error / norm. A = 0 must come back exactly: every other QR has an infinite relative
/// error.
inline double relative(double error, double norm) {
  if (norm > 0 || std::isnan(error)) return error / norm;
  return error > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

/// Returns min |r_ii| / max |r_ii| of the k entries diagonal(i), and 0 for R = 0.
template <class Diagonal>
double diagonal_ratio_of(index_t k, Diagonal diagonal) {
  double largest = 0, least = std::numeric_limits<double>::infinity();
  for (index_t i = 0; i < k; ++i) {
    largest = std::max(largest, std::abs(diagonal(i)));
    least = std::min(least, std::abs(diagonal(i)));
  }
  return largest > 0 ? least / largest : 0;
}

}  // namespace qrtool::strips
