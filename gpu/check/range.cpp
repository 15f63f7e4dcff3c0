// SPDX-License-Identifier: Apache-2.0
// range.cpp: the launches of range.cl.
#include "gpu/check/range.hpp"

#include <string>

#include "core/report/report.hpp"

namespace qrtool {
namespace {

/// Real numbers that a group looks at. 256 .. 2^20; enough for few groups of small matrices, and
/// for many of one large matrix; chosen, not measured.
constexpr index_t numbers_of_group = 16384;
constexpr int group_size = 256;  // RANGE_ITEMS

RangeShape shape_of(index_t numbers, index_t columns, index_t stride) {
  return {numbers, stride, static_cast<int>(ceil_divide(numbers, numbers_of_group)),
          static_cast<int>(columns)};
}

}  // namespace

ProgramSource range_source(const Problem& p) {
  Defines defines = defines_for(p, {}, real_of(p.type));
  defines["ELEMENT_PARTS"] = std::to_string(parts_in(p.type));
  defines["RANGE_NUMBERS"] = std::to_string(numbers_of_group);
  const auto number = [](Status status) { return std::to_string(static_cast<int>(status)); };
  defines["IS_NON_FINITE"] = number(Status::non_finite);
  defines["OVERFLOWS"] = number(Status::r_overflows);
  defines["IS_UNCHECKED"] = number(Status::unchecked);
  return {"gpu/check/range.cl", defines, "the range of numbers"};
}

void enqueue_magnitudes(const FactorJob& job, Queue& queue, Launcher& launch) {
  const index_t numbers = job.problem.m * real_columns(job.problem);
  const RangeShape shape = shape_of(numbers, real_columns(job.problem), numbers);
  queue.fill(job.magnitudes, static_cast<std::uint32_t>(MAGNITUDE_ZERO),
             sizeof(int) * static_cast<std::size_t>(job.count));
  launch("find_magnitudes", job.count * shape.parts, group_size, job.a, job.magnitudes, shape);
}

void enqueue_range(const FactorJob& job, const Buffer& found, Queue& queue, Launcher& launch) {
  const Problem& p = job.problem;
  const index_t columns = real_columns(p);
  const RangeShape shape = shape_of(p.k() * columns, columns, p.r_rows() * columns);
  queue.fill(found, nan_word, sizeof(DeviceErrors) * static_cast<std::size_t>(job.count));
  launch("look_at_r", job.count * shape.parts, group_size, p.mode == Mode::raw ? job.v : job.r,
         job.magnitudes, found, shape);
}

void enqueue_statuses(const Buffer& found, const Buffer& statuses, index_t count,
                      Launcher& launch) {
  launch("give_statuses", ceil_divide(count, group_size), group_size, found, statuses,
         static_cast<int>(count));
}

}  // namespace qrtool
