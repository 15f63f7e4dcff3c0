// SPDX-License-Identifier: Apache-2.0
// narrow_passes.cpp: takes the float32 matrices of at most 128 columns that a guard has refused.
// Factors are of float64, and rows of float32. Device half: narrow_passes.cl.
#include <algorithm>
#include <array>
#include <limits>

#include "gpu/model/tuning.hpp"
#include "gpu/products/tall_sums.hpp"
#include "gpu/reflectors/tall/tall.hpp"
#include "gpu/reflectors/tall/tuning.hpp"

namespace qrtool {
namespace {

constexpr int plain_group = 256;                      // PLAIN_GROUP
constexpr index_t sum_entries = 32, strip_rows = 16;  // of SUM_GROUPS, and STRIP_OF_R

constexpr std::array<std::string_view, 2> heavy_kernels{"factor_narrow", "divide_narrow_a"};

NarrowShape layout_of(const Problem& p) {
  NarrowShape at{};
  const auto take = [&](index_t count) { return take_place(at.slot, count); };
  const SlabShape slabs = row_sums_slabs(p.m, p.n);
  const index_t square = p.n * p.n, rows = ceil_divide(p.m * p.n, 2);
  at.slabs = slabs.count;
  at.slab_rows = slabs.rows;
  at.slab_sums = take(slabs.count * square);
  at.gram = slabs.count > 1 ? take(square) : at.slab_sums;
  at.inverse = take(square);
  at.factors = take(further_pass_counts(p).most * square);
  at.amplitudes = take(p.n);
  at.below = take(slabs.count);
  at.state = take(1);
  at.rows = take(rows);
  at.rows_apart = take(rows) - at.rows;
  return at;
}

Slots slots(const Problem& p) {
  return {static_cast<std::size_t>(layout_of(p).slot) * sizeof(double),
          std::numeric_limits<index_t>::max()};
}

std::size_t local_bytes(const Problem& p, int body) {
  const RowSums sums{.n = p.n, .type = p.type, .body = body, .has_right_side = false};
  return std::max({row_sums_local_bytes(sums), tall_square_local_bytes(p.n),
                   tall_product_local_bytes(p.n, sizeof(double)),
                   static_cast<std::size_t>(2 * strip_rows * p.n) * sizeof(double)});
}

bool fits(const Problem& p, const Limits& limits) {
  if (p.type != ElementType::float32 || p.n > tuning::tall_max_columns) return false;
  return gram_objection(p, limits).empty() &&
         group_objection(plain_group, local_bytes(p, row_sums_body(limits)), limits).empty() &&
         has_room_for_slot(slots(p), p, limits);
}

Params tune(const Problem& p, const Limits& limits) {
  const int body = row_sums_body(limits);
  return {{"COLUMNS_OF_A", static_cast<int>(p.n)},
          {"GRAM_BODY", body},
          {"GRAM_GROUP", row_sums_group(p.n, body)},
          {"FACTOR_GROUP", plain_group},
          {"PRODUCT_GROUP", tall_product_group(body)}};
}

/// Matrices `at.first` .. of the list, one slot each.
void enqueue_wave(const FurtherJob& job, PassRange range, Launcher& launch, NarrowShape at,
                  index_t count) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, count);
  const int gram_group = job.params.at("GRAM_GROUP"),
            product_group = job.params.at("PRODUCT_GROUP");
  const index_t most_parts = ceil_divide(p.m, tuning::narrow_least_rows);
  at.parts = static_cast<int>(
      std::clamp<index_t>(ceil_divide(tuning::tall_product_groups, count), 1, most_parts));
  for (at.pass = range.first; at.pass < range.end; ++at.pass) {
    at.has_sums = at.pass == 0 && job.slab_sums != nullptr;
    launch("sum_narrow", count * at.slabs, gram_group, job.a, job.list, job.slots, shape, at);
    if (at.slabs > 1 || at.has_sums) {
      launch("add_narrow_slabs", count * ceil_divide(p.n * p.n, sum_entries), plain_group, job.list,
             at.has_sums ? *job.slab_sums : job.slots, job.slots, at);
    }
    // A'A is shifted at once, since a guard has refused it as it is.
    for (at.is_shifted = at.pass == 0 ? 1 : 0; at.is_shifted < 2; ++at.is_shifted) {
      launch("factor_narrow", count, plain_group, job.slots, shape, at);
    }
    if (at.pass == 0) {
      launch("divide_narrow_a", count * at.parts, product_group, job.a, job.q, job.list, job.slots,
             shape, at);
    } else {
      launch("divide_narrow_x", count * at.parts, product_group, job.q, job.list, job.slots, shape,
             at);
    }
  }
  launch("finish_narrow", count * ceil_divide(p.n, strip_rows), plain_group, job.a, job.r, job.list,
         job.routes, job.slots, shape, at);
}

void enqueue(const FurtherJob& job, PassRange range, Launcher& launch) {
  const Problem& p = job.problem;
  const int body = job.params.at("GRAM_BODY");
  NarrowShape at = layout_of(p);
  at.shift = tuning::further_shift * tall_rounded_terms(p, body) * 0x1p-53;
  at.noise = 0.75 * 0x1p-25;  // quad_noise is between 1 and 2
  at.most = tall_condition_limit(p, body);
  at.wants_q = p.wants_q();
  in_waves(job, slots(p), [&](index_t first, index_t count) {
    at.first = first;
    enqueue_wave(job, range, launch, at, count);
  });
}

}  // namespace

FurtherRoute narrow_passes() {
  return {.file = "gpu/reflectors/tall/narrow_passes.cl",
          .fits = fits,
          .tune = tune,
          .slots = slots,
          .enqueue = enqueue,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
