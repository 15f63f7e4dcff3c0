// SPDX-License-Identifier: Apache-2.0
// system_layout.cpp: what each system needs, by the bodies that may run.
#include "gpu/solve/system_layout.hpp"

#include <algorithm>

#include "gpu/check/device_sums.hpp"
#include "gpu/solve/from_r/measures.hpp"
#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/input/weights.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/normal_sums.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

std::size_t sum_bytes(index_t length, index_t sides, ElementType type) {
  return SumLayout({.m = length, .n = sides, .type = type, .mode = Mode::r}).bytes();
}

/// The entries of a work-group of measures.cl where it keeps R^-1.
std::size_t scratch_entries(const SolveProblem& p, const Limits& limits) {
  return static_cast<std::size_t>(measure_params(p.n, p.type, limits).at("TEAMS") * p.n * p.n);
}

}  // namespace

SystemLayout system_layout(const SolveProblem& p, index_t sides, const Limits& limits) {
  using L = SystemLayout;
  SystemLayout layout{
      .sides = sides,
      .factor_groups = p.wants_se ? std::max(1, limits.compute_units) * tuning::solve_factor_groups
                                  : index_t{1} << 30,
      .scratch_bytes = p.wants_se ? scratch_entries(p, limits) * sizeof(double) : 0};
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n),
             count = static_cast<std::size_t>(sides);
  const std::size_t element = size_of(p.type);
  auto& bytes = layout.bytes;
  bytes[L::b] = element * m * count;
  bytes[L::x] = element * n * count;
  bytes[L::findings] = sizeof(FactorFindings);
  bytes[L::of_columns] = 2 * n * sizeof(double);
  bytes[L::errors] = count * sizeof(SolutionErrors);
  bytes[L::b_sums] = sum_bytes(p.m, sides, p.type);
  bytes[L::x_sums] = sum_bytes(p.n, sides, p.type);
  if (p.wants_se) {
    bytes[L::se] = bytes[L::x];
  }
  if (p.has_weights) {
    bytes[L::weights] = element * m;
    bytes[L::w_sums] = sum_bytes(p.m, 1, p.type);
  }
  if (needs_weighing(p)) bytes[L::left_out] = sizeof(int);
  if (!is_tall_system(p.m)) return layout;
  const auto slabs = static_cast<std::size_t>(system_slabs(p.m, p.n).count);
  std::size_t sums = count * (n + 2) * sizeof(double), partial = sums * slabs;
  if (takes_normal_equations(p, sides, limits)) {
    const NormalSumsBytes of_normal = normal_sums_bytes(p.m, p.n);
    sums = std::max(sums, of_normal.sums);
    partial = std::max(partial, of_normal.partial);
  }
  bytes[L::tall_partial] = partial;
  bytes[L::tall_sums] = sums;
  bytes[L::tall_state] = count * (n + 1) * sizeof(double);
  return layout;
}

}  // namespace qrtool
