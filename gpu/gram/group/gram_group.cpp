// SPDX-License-Identifier: Apache-2.0
// gram_group.cpp: batches of matrices with 65 to 160 columns, or 1 to 80 complex ones, by Gram
// matrices in two passes (CholeskyQR2), with a guard; and real matrices of at most 160 columns that
// the guard of any variant has refused. Device half: gram_group.cl.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/report/ratios.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/gram/group/gram_group.hpp"
#include "gpu/gram/group/tuning.hpp"
#include "gpu/host/program_cache.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/after_gram.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 1> heavy_kernels{"factor_group"};

constexpr index_t block_room = 288;     // BLOCK_ROOM
constexpr index_t block_entries = 256;  // of 16 x 16

/// Blocks of 16 columns.
index_t blocks(const Problem& p) { return ceil_divide(real_columns(p), 16); }

index_t group_warps(const Problem& p) { return (blocks(p) + 1) / 2; }

/// Whether few registers are enough.
bool is_spare(const Problem& p) { return real_columns(p) <= tuning::gram_group_spare_columns; }

/// The largest useful number of groups, each with a slot.
index_t most_groups(const Problem& p) {
  return is_spare(p) ? tuning::gram_group_spare_groups : tuning::gram_group_groups;
}

ElementType computes_in(const Problem& p) { return real_of(p.type); }

/// The bytes of local memory of factor_group: SHARED_ROOM, an entry for each warp and one for each
/// block.
std::size_t group_local_bytes(const Problem& p, const Limits&) {
  const index_t count = blocks(p), turned = count * 32 * (count < 10 ? 10 : 8);
  const index_t shared =
      std::max({2 * count * block_room + 16, 2 * (count + 1) * block_entries, 2 * turned});
  return sizeof(double) * static_cast<std::size_t>(shared + group_warps(p)) +
         sizeof(int) * static_cast<std::size_t>(count);
}

Params group_params(const Problem& p, const Limits& limits) {
  Params params{{"MMA", limits.float64_products},
                {"VECTOR", std::min(aligned_entries(real_columns(p)), 2)},
                {"BLOCKS", static_cast<int>(blocks(p))},
                {"LAST_HALVES", static_cast<int>((real_columns(p) - 1) % 16 / 8 + 1)}};
  if (is_complex(p.type)) params["ELEMENT_PARTS"] = 2;
  if (limits.float64_products && is_spare(p)) {
    params["SPARE"] = 1;
    params[std::string(most_registers)] = tuning::gram_group_spare_registers;
  }
  return params;
}

Fit fits(const Problem& p, const Limits& limits) {
  for (const std::string& objection : {gram_objection(p, limits), general_objection(p, limits)}) {
    if (!objection.empty()) return {false, objection};
  }
  const index_t parts = parts_in(p.type), most = tuning::gram_group_most_columns / parts;
  const index_t least = is_complex(p.type) ? 1 : tuning::gram_group_least_columns;
  if (p.n < least || p.n > most || p.m > tuning::gram_group_most_rows) {
    return {false, fmt::format("takes {} to {} columns and at most {} rows", least, most,
                               tuning::gram_group_most_rows)};
  }
  const auto work_items = static_cast<int>(32 * group_warps(p));
  const std::string needs = group_objection(work_items, group_local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const Fit fallback = reflectors_after_gram(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, "products in float64, at full speed here"};
}

std::vector<std::size_t> workspace(const Problem& p) {
  return first_q_workspace(reflectors_after_gram(p), p);
}

/// Two factors, and the inverses of pivots.
index_t slot_entries(const Problem& p) {
  return (blocks(p) * (blocks(p) + 1) + blocks(p)) * block_entries;
}

Slots slots(const Problem& p) {
  return {static_cast<std::size_t>(slot_entries(p)) * sizeof(double), most_groups(p)};
}

/// The largest ||Q1'Q1 - I||_F^2 with which the first pass is final.
double most_in_one(const FactorJob& job) {
  if (job.params.contains(unguarded)) return std::numeric_limits<double>::infinity();
  return most_measured_departure(job.problem);
}

const Buffer& first_q(const FactorJob& job) {
  return place_of_first_q(reflectors_after_gram(job.problem), job);
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  GroupPasses how{};
  how.enough = most_in_one(job);
  how.slot = slot_entries(p);
  how.groups = static_cast<int>(std::min(slots(p).most, job.count));
  launch("factor_group", how.groups, static_cast<int>(group_warps(p)) * warp_lanes(job.params),
         job.a, first_q(job), job.r, job.work.front(), job.slots,
         factor_shape(real_form(p), job.count), how, job.magnitudes);
}

// ---- refused matrices

/// The place of X, in float64 numbers, and the end of a slot.
struct RefusedSlot {
  index_t rows, end;
};

RefusedSlot refused_slot(const Problem& p) {
  RefusedSlot at{.rows = 0, .end = slot_entries(p)};
  const auto entries = static_cast<index_t>(p.input_bytes());
  at.rows = take_place(at.end, p.wants_q() ? 0 : ceil_divide(entries, sizeof(double)));
  return at;
}

Slots refused_slots(const Problem& p) {
  return {static_cast<std::size_t>(refused_slot(p).end) * sizeof(double), most_groups(p)};
}

/// The same with REFUSED, where each column of the blocks has a noise, too.
std::size_t refused_local_bytes(const Problem& p, const Limits& limits) {
  return group_local_bytes(p, limits) + static_cast<std::size_t>(16 * blocks(p)) * sizeof(double);
}

bool takes_refused(const Problem& p, const Limits& limits) {
  if (is_complex(p.type) || p.n > tuning::gram_group_most_columns) return false;
  const auto work_items = static_cast<int>(32 * group_warps(p));
  return gram_objection(p, limits).empty() &&
         group_objection(work_items, refused_local_bytes(p, limits), limits).empty() &&
         has_room_for_slot(refused_slots(p), p, limits);
}

Params refused_params(const Problem& p, const Limits& limits) {
  Params params = group_params(p, limits);
  params["REFUSED"] = 1;
  return params;
}

/// A group takes all passes of a matrix at once.
void enqueue_refused(const FurtherJob& job, PassRange, Launcher& launch) {
  const Problem& p = job.problem;
  const RefusedSlot at = refused_slot(p);
  const auto room = static_cast<index_t>(job.slots.bytes() / refused_slots(p).bytes);
  GroupPasses how = passes_of_refused(p);
  how.slot = at.end;
  how.rows = at.rows;
  how.groups = static_cast<int>(std::min(room, job.count));
  launch("factor_group", how.groups, static_cast<int>(group_warps(p)) * warp_lanes(job.params),
         job.a, job.q, job.r, job.routes, job.slots, factor_shape(p, job.count), how, job.list,
         job.listed);
}

}  // namespace

FurtherRoute group_passes() {
  return {.file = "gpu/gram/group/gram_group.cl",
          .fits = takes_refused,
          .tune = refused_params,
          .slots = refused_slots,
          .enqueue = enqueue_refused,
          .finds = Finds::listed,
          .heavy_kernels = heavy_kernels};
}

GpuVariant gram_group_variant() {
  return {.plan = {.name = "opencl/gram_group",
                   .summary = "65 to 160 columns, or to 80 complex, by Gram matrices; guarded",
                   .fits = fits,
                   .tune = group_params,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<gram_group_variant>,
                   .arithmetic = gram_arithmetic,
                   .numbers = Numbers::both},
          .file = "gpu/gram/group/gram_group.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .again = reflectors_after_gram,
          .routes = flagged_routes,
          .first_q = first_q,
          .local_bytes = group_local_bytes,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
