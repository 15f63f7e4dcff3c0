// SPDX-License-Identifier: Apache-2.0
// further_passes.cpp: what a guard has refused, in squares of 128 columns; and complex matrices by
// Gram matrices in as many passes as their condition needs, any number of columns. What the passes
// do not finish, and what is not finite, goes to Householder reflectors. Device half:
// further_passes.cl.
#include <algorithm>
#include <array>
#include <limits>

#include "gpu/check/device_check.hpp"
#include "gpu/gram/steps/sizes.clh"
#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/gram/twice/passes.hpp"
#include "gpu/gram/twice/tuning.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/complex/complex.hpp"

namespace qrtool {
namespace {

constexpr index_t tile = 64;  // TILE

constexpr std::array<std::string_view, 3> heavy_kernels{"divide_rows", "factor_squares",
                                                        "divide_panel"};

struct Layout {
  TwiceShape twice;
  FurtherShape further;
};

Layout layout_of(const Problem& p) {
  const Problem real = real_form(p);
  Layout layout{.twice = twice_shape(real, true), .further = {}};
  TwiceShape& twice = layout.twice;
  FurtherShape& further = layout.further;
  further = further_shape(p, twice.slab_rows + twice.slabs);
  const auto take = [&](index_t count) { return take_place(twice.slot, count); };
  const index_t columns = tile * twice.tiles;
  const index_t rows = std::min<index_t>(
      twice.slab_rows,
      std::max(tuning::further_least_piece_rows, ceil_divide(p.m, tuning::further_most_pieces)));
  const index_t pieces = ceil_divide(p.m, rows);
  further.piece_rows = static_cast<int>(rows);
  further.pieces = static_cast<int>(pieces);
  // Even, because a complex row of R is two real ones.
  further.stored_rows = static_cast<int>(
      std::clamp<index_t>(tuning::further_stored_entries / real.n, 2, tile) / 2 * 2);
  further.exponents = take(pieces * columns);
  further.squares = take(pieces * columns);
  further.below = take(pieces * twice.tiles);
  further.scales = take(columns);
  further.own_r = take(1);
  further.factor = take(real.n * real.n);
  return layout;
}

Slots refused_slots(const Problem& p) {
  return {static_cast<std::size_t>(layout_of(p).twice.slot) * sizeof(double),
          std::numeric_limits<index_t>::max()};
}

bool takes_refused(const Problem& p, const Limits& limits) {
  const Problem real = real_form(p);
  return real.n <= tuning::gram_twice_max_columns && gram_objection(p, limits).empty() &&
         group_objection(twice_group_size, twice_local_bytes(real), limits).empty() &&
         has_room_for_slot(refused_slots(p), p, limits);
}

/// Matrices `first` .. of the list, one slot each.
void enqueue_wave(const FurtherJob& job, PassRange range, Launcher& launch, index_t first,
                  index_t count) {
  auto [twice, further] = layout_of(job.problem);
  further.first = first;
  const Problem real = real_form(job.problem);
  const TwicePasses passes(real, job.params, job.slots, launch, count);
  const FactorShape& shape = passes.shape();
  const Rows x{job.slots, {twice.rows, twice.slot}}, r{job.slots, {further.factor, twice.slot}};
  const auto begin_pass = [&] {
    passes.sum(twice, x);
    launch("begin_pass", count * twice.tiles, passes.group_size(), job.slots, shape, twice,
           further);
  };
  const int most = further_pass_counts(job.problem).most;
  if (range.first == 0) {
    for (const char* kernel : {"measure_refused", "spread_refused"}) {
      launch(kernel, count * further.pieces * twice.tiles, FURTHER_GROUP, job.a, job.list,
             job.slots, shape, twice, further);
    }
    begin_pass();
  }
  for (twice.pass = range.first; twice.pass < range.end;) {
    passes.factor(twice);
    passes.divide(twice, x, x);
    passes.form_r(twice, r);
    // The beginning of a pass also finds out that none is needed.
    if (++twice.pass < most) begin_pass();
  }
  if (job.problem.wants_q()) {
    launch("finish_rows", count * ceil_divide(job.problem.m, further.stored_rows), FURTHER_GROUP,
           job.a, job.q, job.list, job.slots, shape, twice, further);
  }
  launch("finish_factor", count * ceil_divide(real.n, further.stored_rows), FURTHER_GROUP, job.a,
         job.r, job.list, job.routes, job.slots, shape, twice, further);
}

void enqueue_refused(const FurtherJob& job, PassRange range, Launcher& launch) {
  in_waves(job, refused_slots(job.problem),
           [&](index_t first, index_t count) { enqueue_wave(job, range, launch, first, count); });
}

// ---- complex matrices that no other variant has looked at (gram_passes)

ElementType computes_in(const Problem&) { return ElementType::float64; }
std::string arithmetic(const Problem&) { return "complex128"; }
GpuVariant again(const Problem&) { return refused_complex_variant(); }

Fit fits(const Problem& p, const Limits& limits) {
  for (const std::string& objection : {gram_objection(p, limits), general_objection(p, limits)}) {
    if (!objection.empty()) return {false, objection};
  }
  if (!takes_refused(p, limits)) return {false, "needs more memory than the device has"};
  const Fit fallback = again(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, "products in float64, at full speed here"};
}

/// The work buffers of `again`, then one for the list of matrices.
std::vector<std::size_t> workspace(const Problem& p) {
  std::vector<std::size_t> bytes = flagged_workspace(again(p), p);
  bytes.push_back(sizeof(int));
  return bytes;
}

Slots slots(const Problem& p) {
  const std::size_t bytes = refused_slots(p).bytes;
  return {bytes, std::max<index_t>(1, static_cast<index_t>(tuning::further_most_bytes / bytes))};
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Buffer &routes = job.work.front(), &list = job.work.back();
  const Problem real = real_form(job.problem);
  const FactorShape shape = factor_shape(real, job.count);
  launch("list_all", ceil_divide(job.count, index_t{FURTHER_GROUP}), FURTHER_GROUP, list, routes,
         job.magnitudes, shape);
  launch("measure_all", job.count * ceil_divide(real.m * real.n, index_t{LOOKED_ENTRIES}),
         FURTHER_GROUP, job.a, job.magnitudes, shape);
  enqueue_refused(
      {job.problem, job.params, job.count, list, job.a, job.q, job.r, routes, job.slots},
      {0, further_pass_counts(job.problem).most}, launch);
}

std::size_t local_bytes(const Problem& p, const Limits&) { return twice_local_bytes(real_form(p)); }

}  // namespace

FurtherRoute further_passes() {
  return {.file = "gpu/gram/twice/further_passes.cl",
          .fits = takes_refused,
          .tune = twice_params,
          .slots = refused_slots,
          .enqueue = enqueue_refused,
          .heavy_kernels = heavy_kernels};
}

GpuVariant gram_passes_variant() {
  return {.plan = {.name = "opencl/gram_passes",
                   .summary = "complex matrices, by Gram matrices in some passes",
                   .fits = fits,
                   .tune = twice_params,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<gram_passes_variant>,
                   .arithmetic = arithmetic,
                   .numbers = Numbers::complex},
          .file = "gpu/gram/twice/further_passes.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .again = again,
          .routes = flagged_routes,
          .local_bytes = local_bytes,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
