// SPDX-License-Identifier: Apache-2.0
// group_passes.cpp: takes the real matrices of at most 160 columns that a guard has refused. Device
// half: group_passes.cl.
#include <array>

#include "gpu/gram/group/gram_group.hpp"
#include "gpu/model/tuning.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 1> heavy_kernels{"factor_refused_matrix"};

/// The place of X, in float64 numbers, and the end of a slot.
struct Layout {
  index_t rows, end;
};

Layout layout_of(const Problem& p) {
  const std::size_t factors = group_slot_bytes(p, further_pass_counts(p).most);
  Layout at{.rows = 0, .end = static_cast<index_t>(factors / sizeof(double))};
  at.rows = take_place(
      at.end, p.wants_q() ? 0 : ceil_divide(static_cast<index_t>(p.input_bytes()), sizeof(double)));
  return at;
}

Slots slots(const Problem& p) {
  return {static_cast<std::size_t>(layout_of(p).end) * sizeof(double), most_groups(p)};
}

/// Also the noise of each column, up to whole blocks.
std::size_t local_bytes(const Problem& p, const Limits& limits) {
  const auto columns = static_cast<std::size_t>(16 * ceil_divide(p.n, 16));
  return group_local_bytes(p, limits) + columns * sizeof(double);
}

bool fits(const Problem& p, const Limits& limits) {
  if (is_complex(p.type) || p.n > tuning::gram_group_most_columns) return false;
  const auto work_items = static_cast<int>(32 * group_warps(p));
  return gram_objection(p, limits).empty() &&
         group_objection(work_items, local_bytes(p, limits), limits).empty() &&
         has_room_for_slot(slots(p), p, limits);
}

/// A group takes all passes of a matrix at once.
void enqueue(const FurtherJob& job, PassRange range, Launcher& launch) {
  if (range.first > 0) return;
  const Problem& p = job.problem;
  const Layout at = layout_of(p);
  const auto room = static_cast<index_t>(job.slots.bytes() / slots(p).bytes);
  const bool is_single = p.type == ElementType::float32;
  GroupPasses how{};
  how.shift = tuning::further_shift * static_cast<double>(p.m) * 0x1p-53;
  how.noise = 0.75 * (is_single ? 0x1p-25 : 0x1p-52);  // quad_noise is between 1 and 2
  how.enough = most_measured_departure(p);
  how.slot = at.end;
  how.rows = at.rows;
  how.groups = static_cast<int>(std::min(room, job.count));
  how.passes = further_pass_counts(p).most;
  how.wants_q = p.wants_q();
  launch("factor_refused_matrix", how.groups,
         static_cast<int>(group_warps(p)) * warp_lanes(job.params), job.a, job.q, job.r, job.list,
         job.listed, job.routes, job.slots, factor_shape(p, job.count), how);
}

}  // namespace

FurtherRoute group_passes() {
  return {.file = "gpu/gram/group/group_passes.cl",
          .fits = fits,
          .tune = group_params,
          .slots = slots,
          .enqueue = enqueue,
          .reads_number = true,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
