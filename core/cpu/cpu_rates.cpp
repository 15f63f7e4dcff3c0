// SPDX-License-Identifier: Apache-2.0
// cpu_rates.cpp: the time of a problem on the CPU: that of the nearest measured shape, in
// proportion to the operations.
#include "core/cpu/cpu_rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/problem/operations.hpp"
#include "core/problem/tall_shape.hpp"

namespace qrtool {
namespace {

/// Microseconds of one thread for a matrix, each with its check: the factors Q and R, R alone, and
/// the solution for one right side (0: fewer rows than columns). Intel Xeon (Sapphire Rapids,
/// AVX-512), one thread, processor time, 2026-11-23. `qrtool_cpu_rates` (tests/app/bench) prints
/// the rows again.
struct MeasuredMatrix {
  ElementType type;
  index_t m, n;
  double factors_us, r_us, solution_us;
};
// clang-format off
constexpr MeasuredMatrix measured[] = {
    {ElementType::float32, 4, 4, 0.0944, 0.513, 0.186},
    {ElementType::float32, 8, 8, 0.235, 0.598, 0.379},
    {ElementType::float32, 16, 16, 0.759, 1.06, 1.01},
    {ElementType::float32, 32, 32, 3.87, 3.75, 3.30},
    {ElementType::float32, 48, 48, 9.85, 8.74, 8.31},
    {ElementType::float32, 64, 64, 20.9, 17.0, 18.3},
    {ElementType::float32, 96, 96, 60.9, 45.3, 48.2},
    {ElementType::float32, 128, 128, 137, 93.3, 205},
    {ElementType::float32, 160, 160, 277, 190, 384},
    {ElementType::float32, 256, 256, 1024, 655, 1840},
    {ElementType::float32, 512, 512, 7494, 5083, 25181},
    {ElementType::float32, 1024, 1024, 61504, 40171, 283851},
    {ElementType::float32, 2048, 2048, 542577, 335807, 2624053},
    {ElementType::float32, 5000, 5000, 9795509, 6048638, 53171466},
    {ElementType::float32, 64, 8, 0.946, 0.977, 1.20},
    {ElementType::float32, 100, 10, 2.34, 2.55, 1.83},
    {ElementType::float32, 128, 64, 41.0, 26.1, 28.4},
    {ElementType::float32, 200, 64, 69.7, 41.8, 48.6},
    {ElementType::float32, 256, 32, 28.4, 16.8, 22.7},
    {ElementType::float32, 256, 128, 272, 166, 285},
    {ElementType::float32, 512, 256, 2018, 1241, 1884},
    {ElementType::float32, 600, 96, 414, 235, 426},
    {ElementType::float32, 1000, 3, 19.5, 10.7, 5.54},
    {ElementType::float32, 1000, 16, 45.3, 26.0, 37.2},
    {ElementType::float32, 1024, 32, 134, 72.4, 204},
    {ElementType::float32, 1024, 128, 1276, 729, 1104},
    {ElementType::float32, 1024, 512, 16118, 9521, 14966},
    {ElementType::float32, 4000, 16, 455, 243, 452},
    {ElementType::float32, 4000, 64, 4176, 2034, 2592},
    {ElementType::float32, 4000, 160, 7804, 4187, 6662},
    {ElementType::float32, 8000, 32, 2633, 1350, 489},
    {ElementType::float32, 8000, 128, 38892, 18839, 8801},
    {ElementType::float32, 20000, 96, 49686, 9464, 10008},
    {ElementType::float32, 40000, 160, 165538, 73397, 60918},
    {ElementType::float32, 100000, 4, 2991, 1433, 1360},
    {ElementType::float32, 100000, 16, 6310, 1699, 2995},
    {ElementType::float32, 100000, 64, 73029, 22864, 19766},
    {ElementType::float32, 1000000, 32, 202137, 73859, 76017},
    {ElementType::float32, 1000000, 128, 3548464, 667992, 1204736},
    {ElementType::float32, 8, 64, 1.24, 5.37, 0},
    {ElementType::float32, 64, 256, 75.1, 197, 0},
    {ElementType::float32, 100, 1000, 769, 3593, 0},
    {ElementType::float64, 4, 4, 0.0925, 0.517, 0.206},
    {ElementType::float64, 8, 8, 0.254, 0.658, 0.400},
    {ElementType::float64, 16, 16, 1.17, 1.56, 1.10},
    {ElementType::float64, 32, 32, 6.19, 5.67, 3.53},
    {ElementType::float64, 48, 48, 15.2, 12.4, 9.09},
    {ElementType::float64, 64, 64, 31.3, 24.3, 19.8},
    {ElementType::float64, 96, 96, 102, 72.3, 52.9},
    {ElementType::float64, 128, 128, 222, 151, 266},
    {ElementType::float64, 160, 160, 449, 296, 481},
    {ElementType::float64, 256, 256, 1617, 1055, 1674},
    {ElementType::float64, 512, 512, 12110, 7318, 11638},
    {ElementType::float64, 1024, 1024, 89823, 57004, 89381},
    {ElementType::float64, 2048, 2048, 879093, 495183, 720835},
    {ElementType::float64, 5000, 5000, 14798179, 8487762, 11469414},
    {ElementType::float64, 64, 8, 1.37, 1.34, 1.39},
    {ElementType::float64, 100, 10, 3.59, 3.77, 2.05},
    {ElementType::float64, 128, 64, 67.4, 42.6, 32.5},
    {ElementType::float64, 200, 64, 122, 72.1, 59.3},
    {ElementType::float64, 256, 32, 51.5, 30.9, 29.3},
    {ElementType::float64, 256, 128, 483, 293, 458},
    {ElementType::float64, 512, 256, 3228, 1868, 2801},
    {ElementType::float64, 600, 96, 744, 440, 744},
    {ElementType::float64, 1000, 3, 25.4, 15.7, 6.82},
    {ElementType::float64, 1000, 16, 74.4, 49.4, 47.6},
    {ElementType::float64, 1024, 32, 251, 142, 317},
    {ElementType::float64, 1024, 128, 2135, 1248, 1845},
    {ElementType::float64, 1024, 512, 27336, 15939, 21607},
    {ElementType::float64, 4000, 16, 848, 443, 778},
    {ElementType::float64, 4000, 64, 8366, 4074, 5215},
    {ElementType::float64, 4000, 160, 14600, 7809, 12014},
    {ElementType::float64, 8000, 32, 5252, 2602, 1480},
    {ElementType::float64, 8000, 128, 85580, 42711, 17623},
    {ElementType::float64, 20000, 96, 60544, 30216, 25958},
    {ElementType::float64, 40000, 160, 291557, 135885, 121267},
    {ElementType::float64, 100000, 4, 4192, 1986, 1822},
    {ElementType::float64, 100000, 16, 10891, 5345, 5655},
    {ElementType::float64, 100000, 64, 123616, 59464, 45124},
    {ElementType::float64, 1000000, 32, 360189, 156278, 149630},
    {ElementType::float64, 1000000, 128, 4737137, 2068026, 2106694},
    {ElementType::float64, 8, 64, 1.29, 5.51, 0},
    {ElementType::float64, 64, 256, 106, 246, 0},
    {ElementType::float64, 100, 1000, 1087, 5035, 0},
};
// clang-format on
/// How much longer threads take that work beside others, for each of the others: batches of 64 x 64
/// to 512 x 256 take a seventh to an eighth of the time with 16 threads; one matrix that 16 threads
/// share takes a fifth (1024 x 1024), and from huge_matrix_flops on an eleventh (5000 x 5000 in
/// float64). Host of an H200, 2026-11-23.
constexpr double beside_others = 0.07, beside_others_on_one = 0.1, beside_others_on_huge = 0.03;
constexpr double huge_matrix_flops = 1e11;
/// The largest number of threads that share one matrix, and the operations from which they do.
constexpr index_t threads_of_large_matrix = 16;
constexpr double large_matrix_flops = 1e8;
/// Rows for each column beyond which a matrix goes by leaves.
constexpr index_t rows_of_tall = 32;
/// The rate of a thread for the products of further right sides.
constexpr double side_flops_per_second = 8e9;

double distance(const Problem& p, const MeasuredMatrix& matrix) {
  const auto apart = [](index_t one, index_t other) {
    return std::abs(
        std::log2(static_cast<double>(std::max<index_t>(one, 1)) / static_cast<double>(other)));
  };
  const double other_type = p.type == matrix.type ? 0 : 1000;
  return apart(p.m, matrix.m) + apart(p.n, matrix.n) + other_type;
}

/// The threads that share one matrix: those of a tall one share its leaves.
index_t sharing_threads(const Problem& p) {
  Problem one = p;
  one.count = 1;
  if (operations(one) < large_matrix_flops) return 1;
  if (p.m <= rows_of_tall * p.n) return threads_of_large_matrix;
  return std::min(threads_of_large_matrix, TallShape(p.m, p.n).leaves());
}

/// How many times as fast as one thread all of them are together.
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

/// The seconds of one thread for all of `p`, from those of the nearest matrix.
double one_thread_seconds(const Problem& p, double MeasuredMatrix::*time) {
  const auto rank = [&](const MeasuredMatrix& matrix) {
    return matrix.*time > 0 ? distance(p, matrix) : std::numeric_limits<double>::infinity();
  };
  const MeasuredMatrix& nearest = *std::ranges::min_element(measured, {}, rank);
  const Problem one{1, nearest.m, nearest.n, p.type, p.wants_q() ? Mode::reduced : Mode::r};
  return 1e-6 * nearest.*time * operations(p) / operations(one);
}

}  // namespace

double cpu_seconds(const Problem& p, int threads) {
  if (p.is_empty()) return 0;
  Problem with_q = p;
  if (!p.wants_q()) with_q.mode = Mode::reduced;
  double seconds = one_thread_seconds(with_q, &MeasuredMatrix::factors_us);
  if (!p.wants_q()) seconds = std::min(seconds, one_thread_seconds(p, &MeasuredMatrix::r_us));
  return seconds / speed_of(p, threads);
}

double cpu_solve_seconds(const Problem& p, index_t sides, int threads) {
  if (p.is_empty() || sides == 0) return 0;
  // Q'b, x and the error of a right side are products with A and Q.
  const double products = 8 * static_cast<double>(p.count) * static_cast<double>(p.m) *
                          static_cast<double>(p.n) * static_cast<double>(sides - 1);
  const double solutions = one_thread_seconds(p, &MeasuredMatrix::solution_us);
  return (solutions + products / side_flops_per_second) / speed_of(p, threads);
}

}  // namespace qrtool
