// SPDX-License-Identifier: Apache-2.0
// gpu_variant.cpp: what the variants share: objections, guards' limits, workspaces and defines.
#include "gpu/model/gpu_variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/report/ratios.hpp"
#include "gpu/model/tuning.hpp"

namespace qrtool {

std::size_t shared_work_buffer(const GpuVariant& variant, const Problem& p) {
  if (variant.again == nullptr || variant.slots == nullptr) return 0;
  std::vector<std::size_t> work = flagged_workspace(variant.again(p), p);
  work[p.wants_q() ? 0 : borrowed_buffer(variant.again(p), p)] = 0;
  work[0] = 0;  // the routes
  return static_cast<std::size_t>(std::ranges::max_element(work) - work.begin());
}

FactorShape factor_shape(const Problem& p, index_t count) {
  FactorShape shape{};
  shape.count = static_cast<int>(count);
  shape.m = static_cast<int>(p.m);
  shape.n = static_cast<int>(p.n);
  shape.k = static_cast<int>(p.k());
  shape.q_cols = static_cast<int>(p.q_cols());
  shape.r_rows = p.mode == Mode::raw ? 0 : static_cast<int>(p.r_rows());
  shape.positive = p.sign == Sign::positive && p.mode != Mode::raw;
  shape.raw = p.mode == Mode::raw;
  return shape;
}

Problem real_form(const Problem& p) {
  Problem real = p;
  real.type = real_of(p.type);
  real.n = real_columns(p);
  return real;
}

std::string gram_arithmetic(const Problem& p) {
  const std::string type(name_of(p.type));
  return real_of(p.type) == ElementType::float64 ? type : type + ", sums in float64";
}

index_t take_place(index_t& end, index_t count) {
  const index_t first = end;
  end += ceil_divide(count, 16) * 16;
  return first;
}

std::string gram_objection(const Problem& p, const Limits& limits) {
  const bool is_single = real_of(p.type) == ElementType::float32;
  if (is_single && p.arithmetic == Arithmetic::strict) return "sums in float64";
  if (p.mode == Mode::raw || (p.wants_q() && p.q_cols() != p.n)) {
    return "gives R, or R and a reduced Q";
  }
  if (p.sign != Sign::positive) return "gives R a positive diagonal only";
  if (p.m < p.n || p.n < 1) return "takes at least as many rows as columns";
  if (p.type == ElementType::float32 && p.m < tuning::few_rows)
    return fmt::format("takes {} rows or more", tuning::few_rows);
  return products_objection(limits);
}

std::string products_objection(const Limits& limits) {
  if (!limits.has_float64) return "the device has no float64";
  if (!limits.float64_products && (!limits.is_cpu || limits.slow_float64))
    return "needs fast float64, and shuffles among 32 work-items";
  return {};
}

double orthogonality_bar(const Problem& p) {
  return standard_bars(p.m, p.n, single_precision, {}).orthogonality;
}

FactorLimits gram_limits(const FactorJob& job) {
  const Problem& problem = job.problem;
  // A sum of the real form has one more term (gpu/common/complex_blocks.clh).
  const auto m = static_cast<double>(problem.m + parts_in(problem.type) - 1);
  const auto n = static_cast<double>(real_columns(problem));
  const double bar = orthogonality_bar(problem), root = std::sqrt(n);
  const double unit = n * (m + 2 * n) * 0x1p-53;
  // Rounding Q to float32 takes at most 2^-23 sqrt(n) of the bar.
  const double most = tuning::gram_guard_share * bar - 0x1p-23 * root;
  const double measured = most - m * 0x1p-53 * (root + 1);
  const double tried = tuning::gram_first_pass_error / (2 * std::sqrt(m) * 0x1p-53);
  FactorLimits limits{.most = static_cast<float>(most / unit),
                      .most_in_two = static_cast<float>(tried),
                      .most_of_r = static_cast<float>(bar / 2 / unit),
                      .share = static_cast<float>(2 * tuning::gram_inverse_error * 0x1p-53 / unit),
                      .most_measured = measured * measured,
                      .most_departure = std::min(bar / 4, 0x1p-4)};
  if (job.params.contains(unguarded)) limits.most = std::numeric_limits<float>::infinity();
  return limits;
}

double most_in_one_pass(const Problem& p, index_t terms) {
  const auto steps = static_cast<double>(terms);
  const double growth = std::max({8.0, tuning::gram_guard_per_root * std::sqrt(steps), steps / 8});
  const double bar = standard_bars(p.m, p.n, double_precision, {}).residual;
  const double most = 2 * tuning::gram_twice_one_pass_share * bar / (growth * 0x1p-53);
  return most * most;
}

std::vector<std::size_t> flagged_workspace(const GpuVariant& again, const Problem& problem) {
  std::vector<std::size_t> bytes = again.workspace(problem);
  bytes.insert(bytes.begin(), sizeof(int));
  return bytes;
}

std::size_t borrowed_buffer(const GpuVariant& again, const Problem& problem) {
  const std::vector<std::size_t> bytes = again.workspace(problem);
  const auto has_room = [&](std::size_t b) { return b >= problem.input_bytes(); };
  const auto found = std::ranges::find_if(bytes, has_room);
  return found == bytes.end() ? 0 : 1 + static_cast<std::size_t>(found - bytes.begin());
}

std::vector<std::size_t> first_q_workspace(const GpuVariant& again, const Problem& problem) {
  std::vector<std::size_t> bytes = flagged_workspace(again, problem);
  if (!problem.wants_q() && borrowed_buffer(again, problem) == 0)
    bytes.push_back(problem.input_bytes());
  return bytes;
}

const Buffer& place_of_first_q(const GpuVariant& again, const FactorJob& job) {
  if (job.problem.wants_q()) return job.q;
  const std::size_t borrowed = borrowed_buffer(again, job.problem);
  return borrowed > 0 ? job.work[borrowed] : job.work.back();
}

ElementType computed_type(const Problem& problem, index_t few_rows) {
  return problem.m < few_rows ? ElementType::float64 : problem.type;
}

std::string general_objection(const Problem& p, const Limits& limits, ElementType needed) {
  if (!limits.has_float64 && real_of(needed) == ElementType::float64)
    return "the device has no float64";
  constexpr index_t most = std::numeric_limits<int>::max() / 2;
  if (p.m > most || p.n > most) return "more than 2^30 rows or columns";
  // Kernels count the entries of 32 rows of R, and of A, in 32 bits.
  constexpr index_t most_columns = std::numeric_limits<int>::max() / 32;
  if (p.n > most_columns) return "2^26 columns or more";
  return {};
}

std::string group_objection(int work_items, std::size_t local_bytes, const Limits& limits) {
  if (work_items <= limits.max_group && local_bytes <= limits.local_bytes) return {};
  return fmt::format("needs {} work-items and {} bytes of local memory per group", work_items,
                     local_bytes);
}

Defines defines_for(const Problem& problem, const Params& params, ElementType real) {
  const auto c_name = [](ElementType type) {
    return type == ElementType::float32 ? "float" : "double";
  };
  Defines defines{{"STORED", c_name(real_of(problem.type))}, {"REAL", c_name(real)}};
  for (const auto& [name, value] : params) defines[name] = std::to_string(value);
  return defines;
}

}  // namespace qrtool
