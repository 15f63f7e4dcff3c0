// SPDX-License-Identifier: Apache-2.0
// cpu_rates.cpp: the time of a problem on the CPU: that of the nearest measured shape, in
// proportion to the operations.
#include "core/cpu/cpu_rates.hpp"

#include <algorithm>
#include <cmath>

#include "core/operations.hpp"

namespace qrtool {
namespace {

/// Microseconds of one core for a matrix: the factors Q and R, and the check of both. Intel Xeon
/// (Sapphire Rapids, AVX-512), 2026-11.
struct MeasuredMatrix {
  ElementType type;
  index_t m, n;
  double factor_us, check_us;
};
constexpr MeasuredMatrix measured[] = {
    {ElementType::float32, 8, 8, 0.38, 0.26},
    {ElementType::float32, 16, 16, 0.82, 1.45},
    {ElementType::float32, 32, 32, 2.76, 4.3},
    {ElementType::float32, 64, 64, 14.7, 15.6},
    {ElementType::float32, 128, 64, 34.9, 31},
    {ElementType::float32, 256, 128, 237, 290},
    {ElementType::float32, 512, 256, 1900, 2100},
    {ElementType::float32, 2048, 2048, 314e3, 420e3},
    {ElementType::float32, 5000, 5000, 4.18e6, 5.72e6},
    {ElementType::float32, 1000000, 32, 189e3, 113e3},
    {ElementType::float64, 8, 8, 0.38, 0.26},
    {ElementType::float64, 16, 16, 1.33, 1.36},
    {ElementType::float64, 32, 32, 5.7, 4.6},
    {ElementType::float64, 64, 64, 28, 24},
    {ElementType::float64, 128, 64, 70, 45},
    {ElementType::float64, 256, 128, 575, 380},
    {ElementType::float64, 512, 256, 4220, 2360},
    {ElementType::float64, 2048, 2048, 738e3, 457e3},
    {ElementType::float64, 5000, 5000, 9.58e6, 5.63e6},
    {ElementType::float64, 1000000, 32, 370e3, 148e3},
};
/// The largest number of cores that work on one matrix at full speed. Not measured.
constexpr int cores_of_large_matrix = 16;
constexpr double large_matrix_flops = 1e8;

double distance(const Problem& p, const MeasuredMatrix& matrix) {
  const auto apart = [](index_t one, index_t other) {
    return std::abs(
        std::log2(static_cast<double>(std::max<index_t>(one, 1)) / static_cast<double>(other)));
  };
  const double other_type = p.type == matrix.type ? 0 : 1000;
  return apart(std::max(p.m, p.n), matrix.m) + apart(p.k(), matrix.n) + other_type;
}

/// The number of threads that have something to do.
int busy_threads(const Problem& p, int threads) {
  Problem one = p;
  one.count = 1;
  const index_t per_matrix = operations(one) >= large_matrix_flops ? cores_of_large_matrix : 1;
  return static_cast<int>(std::clamp<index_t>(p.count * per_matrix, 1, std::max(threads, 1)));
}

}  // namespace

double cpu_seconds(const Problem& p, int threads) {
  if (p.is_empty()) return 0;
  const MeasuredMatrix& nearest = *std::ranges::min_element(
      measured, {}, [&](const MeasuredMatrix& matrix) { return distance(p, matrix); });
  const Problem one{1, nearest.m, nearest.n, p.type, Mode::reduced};
  const double all = operations(p) / operations(one);
  return 1e-6 * all * (nearest.factor_us + nearest.check_us) / busy_threads(p, threads);
}

}  // namespace qrtool
