// SPDX-License-Identifier: Apache-2.0
// system_buffers.cpp: sizes of buffers, and buffers that are kept.
#include "gpu/solve/system_buffers.hpp"

#include <algorithm>

#include "gpu/check/device_sums.hpp"
#include "gpu/solve/normal.hpp"
#include "gpu/solve/normal_sums.hpp"
#include "gpu/solve/tall_systems.hpp"
#include "gpu/solve/weights.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

constexpr int shared_by_sets = -1;  // the place of a buffer that all sets use

std::size_t sum_bytes(index_t length, index_t sides, ElementType type) {
  return SumLayout({.m = length, .n = sides, .type = type, .mode = Mode::r}).bytes();
}

}  // namespace

SystemLayout::SystemLayout(const SolveProblem& p, index_t right_sides, const Params& params,
                           const Limits& limits)
    : sides(right_sides),
      factor_groups(p.wants_se ? std::max(1, limits.compute_units) * tuning::solve_factor_groups
                               : index_t{1} << 30),
      scratch_bytes(p.wants_se
                        ? static_cast<std::size_t>(params.at("TEAMS") * p.n * p.n) * sizeof(double)
                        : 0) {
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n),
             count = static_cast<std::size_t>(sides);
  const std::size_t element = size_of(p.type), x_bytes = element * n * count;
  bytes = {element * m * count,
           x_bytes,
           p.wants_se ? x_bytes : 0,
           sizeof(FactorFindings),
           p.wants_se ? n * sizeof(double) : 0,
           count * sizeof(SolutionErrors),
           sum_bytes(p.m, sides, p.type),
           sum_bytes(p.n, sides, p.type),
           p.has_weights ? element * m : 0,
           p.has_weights ? sum_bytes(p.m, 1, p.type) : 0,
           needs_weighing(p) ? sizeof(cl_int) : 0,
           0,
           0,
           0};
  if (!is_tall_system(p.m)) return;
  const auto slabs = static_cast<std::size_t>(system_slabs(p.m).count);
  std::size_t sums = count * (n + 2) * sizeof(double), partial = sums * slabs;
  if (takes_normal_equations(p, sides, limits)) {
    const NormalSumsBytes of_normal = normal_sums_bytes(p.m, p.n);
    sums = std::max(sums, of_normal.sums);
    partial = std::max(partial, of_normal.partial);
  }
  bytes[11] = partial;
  bytes[12] = sums;
  bytes[13] = count * (n + 1) * sizeof(double);
}

SystemJob SystemBuffers::job(const FactorJob& factor, const SystemParams& params,
                             const SystemShape& shape) const {
  return {.params = params.group,
          .type = params.type,
          .shape = shape,
          .a = factor.a,
          .r = factor.r,
          .b = b,
          .x = x,
          .se = se,
          .findings = findings,
          .inverse_norms = inverse_norms,
          .scratch = scratch,
          .errors = errors,
          .factor_groups = layout.factor_groups,
          .tall_params = params.tall,
          .normal_params = params.normal,
          .sums_params = params.sums,
          .tall_normal_params = params.tall_normal,
          .tall = tall};
}

void SystemBuffers::poison(const cl::CommandQueue& queue, index_t count) const {
  constexpr cl_uint nan = 0xffffffff;
  const auto systems = static_cast<std::size_t>(count);
  queue.enqueueFillBuffer(x, nan, 0, systems * layout.bytes[1]);
  if (layout.bytes[2] > 0) queue.enqueueFillBuffer(se, nan, 0, systems * layout.bytes[2]);
  queue.enqueueFillBuffer(findings, nan, 0, systems * layout.bytes[3]);
  queue.enqueueFillBuffer(errors, nan, 0, systems * layout.bytes[5]);
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

SystemBuffers SystemPool::get(const SystemLayout& layout, index_t count, int set) {
  std::size_t entry = 0;
  const auto groups = static_cast<std::size_t>(std::min(count, layout.factor_groups));
  const auto take = [&] {
    const std::size_t bytes = layout.bytes[entry] * static_cast<std::size_t>(count);
    return grown({set, entry++}, bytes);
  };
  return {.layout = layout,
          .b = take(),
          .x = take(),
          .se = take(),
          .findings = take(),
          .inverse_norms = take(),
          .errors = take(),
          .b_sums = take(),
          .x_sums = take(),
          .weights = take(),
          .w_sums = take(),
          .left_out = take(),
          .tall = {.partial = take(), .sums = take(), .state = take()},
          .scratch = grown({shared_by_sets, 0}, layout.scratch_bytes * groups)};
}

}  // namespace qrtool
