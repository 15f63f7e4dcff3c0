// SPDX-License-Identifier: Apache-2.0
// system_buffers.cpp: sizes of buffers, and buffers that are kept.
#include "gpu/solve/system_buffers.hpp"

#include <algorithm>

#include "gpu/check/device_sums.hpp"
#include "gpu/solve/measures.hpp"
#include "gpu/solve/normal.hpp"
#include "gpu/solve/normal_sums.hpp"
#include "gpu/solve/tall_systems.hpp"
#include "gpu/solve/tuning.hpp"
#include "gpu/solve/weights.hpp"

namespace qrtool {
namespace {

constexpr int shared_by_sets = -1;  // the place of a buffer that all sets use

std::size_t sum_bytes(index_t length, index_t sides, ElementType type) {
  return SumLayout({.m = length, .n = sides, .type = type, .mode = Mode::r}).bytes();
}

/// The entries of a work-group of measures.cl where it keeps R^-1.
std::size_t scratch_entries(const SolveProblem& p, const Limits& limits) {
  return static_cast<std::size_t>(measure_params(p.n, p.type, limits).at("TEAMS") * p.n * p.n);
}

}  // namespace

SystemLayout::SystemLayout(const SolveProblem& p, index_t right_sides, const Limits& limits)
    : sides(right_sides),
      factor_groups(p.wants_se ? std::max(1, limits.compute_units) * tuning::solve_factor_groups
                               : index_t{1} << 30),
      scratch_bytes(p.wants_se ? scratch_entries(p, limits) * sizeof(double) : 0) {
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n),
             count = static_cast<std::size_t>(sides);
  const std::size_t element = size_of(p.type);
  bytes[b] = element * m * count;
  bytes[x] = element * n * count;
  bytes[findings] = sizeof(FactorFindings);
  bytes[of_columns] = 2 * n * sizeof(double);
  bytes[errors] = count * sizeof(SolutionErrors);
  bytes[b_sums] = sum_bytes(p.m, sides, p.type);
  bytes[x_sums] = sum_bytes(p.n, sides, p.type);
  if (p.wants_se) {
    bytes[se] = bytes[x];
  }
  if (p.has_weights) {
    bytes[weights] = element * m;
    bytes[w_sums] = sum_bytes(p.m, 1, p.type);
  }
  if (needs_weighing(p)) bytes[left_out] = sizeof(cl_int);
  if (!is_tall_system(p.m)) return;
  const auto slabs = static_cast<std::size_t>(system_slabs(p.m, p.n).count);
  std::size_t sums = count * (n + 2) * sizeof(double), partial = sums * slabs;
  if (takes_normal_equations(p, sides, limits)) {
    const NormalSumsBytes of_normal = normal_sums_bytes(p.m, p.n);
    sums = std::max(sums, of_normal.sums);
    partial = std::max(partial, of_normal.partial);
  }
  bytes[tall_partial] = partial;
  bytes[tall_sums] = sums;
  bytes[tall_state] = count * (n + 1) * sizeof(double);
}

SystemJob SystemBuffers::job(const FactorJob& factor, const SystemShape& shape) const {
  return {.type = factor.problem.type,
          .n = factor.problem.n,
          .shape = shape,
          .a = factor.a,
          .r = factor.r,
          .b = b,
          .x = x,
          .se = se,
          .findings = findings,
          .of_columns = of_columns,
          .scratch = scratch,
          .errors = errors,
          .factor_groups = layout.factor_groups,
          .tall = tall};
}

void SystemBuffers::poison(const cl::CommandQueue& queue, index_t count) const {
  constexpr cl_uint nan = 0xffffffff;
  const auto systems = static_cast<std::size_t>(count);
  const auto fill = [&](const cl::Buffer& buffer, SystemLayout::Entry entry) {
    const std::size_t bytes = systems * layout.bytes[entry];
    if (bytes > 0) queue.enqueueFillBuffer(buffer, nan, 0, bytes);
  };
  fill(x, SystemLayout::x);
  fill(se, SystemLayout::se);
  fill(findings, SystemLayout::findings);
  fill(errors, SystemLayout::errors);
}

cl::Buffer SystemPool::grown(std::pair<int, std::size_t> place, std::size_t bytes) {
  auto& [buffer, size] = buffers_[place];
  // OpenCL does not allow a buffer of 0 bytes.
  const std::size_t needed = std::max<std::size_t>(bytes, 64);
  if (size < needed) {
    buffer = {};
    size = 0;
    buffer = cl::Buffer(context_, CL_MEM_READ_WRITE, needed);
    size = needed;
  }
  return buffer;
}

cl::Buffer SystemPool::shared(int entry, std::size_t bytes) {
  return grown({shared_by_sets, static_cast<std::size_t>(entry)}, bytes);
}

SystemBuffers SystemPool::get(const SystemLayout& layout, index_t count, int set) {
  using L = SystemLayout;
  const auto groups = static_cast<std::size_t>(std::min(count, layout.factor_groups));
  const auto take = [&](L::Entry entry) {
    return grown({set, entry}, layout.bytes[entry] * static_cast<std::size_t>(count));
  };
  return {.layout = layout,
          .b = take(L::b),
          .x = take(L::x),
          .se = take(L::se),
          .findings = take(L::findings),
          .of_columns = take(L::of_columns),
          .errors = take(L::errors),
          .b_sums = take(L::b_sums),
          .x_sums = take(L::x_sums),
          .weights = take(L::weights),
          .w_sums = take(L::w_sums),
          .left_out = take(L::left_out),
          .tall = {.partial = take(L::tall_partial),
                   .sums = take(L::tall_sums),
                   .state = take(L::tall_state)},
          .scratch = grown({shared_by_sets, 0}, layout.scratch_bytes * groups)};
}

}  // namespace qrtool
