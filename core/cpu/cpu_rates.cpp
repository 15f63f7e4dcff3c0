// SPDX-License-Identifier: Apache-2.0
// cpu_rates.cpp: the time of a run on the CPU, in proportion to the operations and to the threads.
#include "core/cpu/cpu_rates.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/problem/operations.hpp"
#include "core/problem/tall_shape.hpp"

namespace qrtool {
namespace {

/// The fraction by which a thread is slower for each other thread: batches of 64 x 64 to 512 x 256
/// take a seventh to an eighth of the time with 16 threads; one matrix that 16 threads share takes
/// a fifth (1024 x 1024), and from huge_matrix_flops on an eleventh (5000 x 5000 in float64). Host
/// of an H200, 2026-11-23.
constexpr double beside_others = 0.07, beside_others_on_one = 0.1, beside_others_on_huge = 0.03;
constexpr double huge_matrix_flops = 1e11;
/// The largest number of threads that share one matrix, and the operations from which they do.
constexpr index_t threads_of_large_matrix = 16;
constexpr double large_matrix_flops = 1e8;
/// Rows for each column beyond which a matrix goes by leaves.
constexpr index_t rows_of_tall = 32;
/// The rate of a thread for the products of further right sides.
constexpr double side_flops_per_second = 8e9;

/// Returns the number of threads that share one matrix. For a tall matrix they share its leaves.
index_t sharing_threads(const Problem& p) {
  Problem one = p;
  one.count = 1;
  if (operations(one) < large_matrix_flops) return 1;
  if (p.m <= rows_of_tall * p.n) return threads_of_large_matrix;
  return std::min(threads_of_large_matrix, TallShape(p.m, p.n).leaves());
}

/// Returns how many times as fast as one thread all of them are together.
double speed_of(const Problem& p, int threads) {
  const bool is_shared = p.count < threads;
  const index_t per_matrix = is_shared ? sharing_threads(p) : 1;
  const auto busy =
      static_cast<double>(std::clamp<index_t>(p.count * per_matrix, 1, std::max(threads, 1)));
  const bool is_huge = operations(p) >= huge_matrix_flops * static_cast<double>(p.count);
  const double each = per_matrix == 1 ? beside_others
                      : is_huge       ? beside_others_on_huge
                                      : beside_others_on_one;
  return busy / (1 + (busy - 1) * each);
}

/// Returns the seconds of one thread for all of `p`, from the nearest row of the table. Complex
/// matrices have no rows: they take as long as real ones of float32.
double one_thread_seconds(std::string_view run, Problem p) {
  if (is_complex(p.type)) p.type = ElementType::float32;
  const auto count = static_cast<double>(std::exchange(p.count, 1));
  return count * cpu_runs().nearest_seconds(run, p);
}

double factor_seconds(const Problem& p) {
  Problem with_q = p;
  if (!p.wants_q()) with_q.mode = Mode::reduced;
  const double seconds = one_thread_seconds("run/factor", with_q);
  return p.wants_q() ? seconds : std::min(seconds, one_thread_seconds("run/factor", p));
}

double solve_seconds(const Problem& p, index_t sides) {
  // Q'b, x and the error of a right side are products with A and Q.
  const double products = 8 * static_cast<double>(p.count) * static_cast<double>(p.m) *
                          static_cast<double>(p.n) * static_cast<double>(sides - 1);
  return one_thread_seconds("run/solve", p) + products / side_flops_per_second;
}

}  // namespace

double cpu_seconds(const Work& work, int threads) {
  const Problem& p = work.problem;
  if (p.is_empty()) return 0;
  const double seconds =
      work.right_sides > 0 ? solve_seconds(p, work.right_sides) : factor_seconds(p);
  return seconds / speed_of(p, threads);
}

}  // namespace qrtool
