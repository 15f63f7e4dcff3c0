// SPDX-License-Identifier: Apache-2.0
// gram_tiles.cpp: float32 by Gram matrices in float64 (CholeskyQR) in tiles of 64 columns, with a
// guard; what it stops goes to Householder reflectors. Device half: gram_tiles.cl.
#include <algorithm>
#include <array>

#include "gpu/check/device_check.hpp"
#include "gpu/gram/steps/sizes.clh"
#include "gpu/gram/tiles/gram_tiles.hpp"
#include "gpu/gram/tiles/tuning.hpp"
#include "gpu/host/program_cache.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/after_gram.hpp"

namespace qrtool {
namespace {

constexpr int warps = 4;
constexpr int square_warps = 8;

constexpr std::array<std::string_view, 4> heavy_kernels{"factor_whole", "form_panel",
                                                        "update_trailing", "finish"};

ElementType computes_in(const Problem& p) { return p.type; }

index_t tiles(const Problem& p) { return ceil_divide(p.n, tuning::gram_tiles_columns); }

/// Local memory of the kernel that takes most: form_q with its stages of A and X, factor_whole with
/// its square and form_panel with two columns of a square.
std::size_t local_bytes(const Problem&, const Limits&) {
  constexpr std::size_t real = sizeof(double), tile = tuning::gram_tiles_columns;
  constexpr std::size_t side = 128, block_room = 16 * 18;        // SIDE, BLOCK_ROOM
  constexpr std::size_t column = side / 16 * block_room;         // COLUMN_ROOM
  constexpr std::size_t stages = 3, a_ld = 24, x_ld = tile + 2;  // Q_STAGES, Q_LD, X_LD
  constexpr std::size_t form_q = stages * (sizeof(float) * tile * a_ld + real * 16 * x_ld);
  constexpr std::size_t square = 2 * column + side;  // SQUARE_ROOM
  constexpr std::size_t factor_whole = real * (square + 32) + sizeof(int);
  constexpr std::size_t form_panel = real * 2 * column;
  return std::max({form_q, factor_whole, form_panel});
}

Fit fits(const Problem& p, const Limits& limits) {
  if (p.type != ElementType::float32) return {false, "takes float32 only"};
  const std::string objection = gram_objection(p, limits);
  if (!objection.empty()) return {false, objection};
  if (p.n > tuning::gram_tiles_max_columns) {
    return {false, "takes at most " + std::to_string(tuning::gram_tiles_max_columns) + " columns"};
  }
  const std::string needs = group_objection(32 * square_warps, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const Fit fallback = reflectors_after_gram(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, limits.float64_products ? "products in float64, at full speed here"
                                        : "products in float64, one work-item per 32"};
}

Params tune(const Problem& p, const Limits& limits) {
  Params params{{"MMA", limits.float64_products},
                {"VECTOR", aligned_entries(p.n)},
                {"MOST_COLUMNS", tuning::gram_tiles_max_columns}};
  if (limits.float64_products) params[std::string(most_registers)] = tuning::gram_tiles_registers;
  return params;
}

std::vector<std::size_t> workspace(const Problem& p) {
  return flagged_workspace(reflectors_after_gram(p), p);
}

/// Tiles on and below the diagonal.
index_t pairs(const Problem& p) { return tiles(p) * (tiles(p) + 1) / 2; }

/// The slabs of rows whose Gram matrices are summed side by side (slot.clh).
index_t gram_slabs(const Problem& p) {
  if (tiles(p) <= 2) return 1;
  return std::clamp<index_t>(ceil_divide(index_t{GRAM_GROUPS}, pairs(p)), 1,
                             std::max<index_t>(p.m / LEAST_SLAB_ROWS, 1));
}

/// One matrix in flight, as slot_entries of the kernels: N x N tiles, those of a square's factor,
/// lines of a number per column, largest entries and slabs.
Slots slots(const Problem& p) {
  const index_t count = tiles(p), slabs = gram_slabs(p), side = tuning::gram_tiles_columns;
  const index_t lines = 3 + ceil_divide(count, 2), stored = slabs > 1 ? slabs * pairs(p) : 0;
  const index_t front = (count * count + 4) * side * side + count * (lines * side + slabs);
  const index_t entries = (front + 1) / 2 * 2 + stored * side * side;
  const std::size_t bytes = static_cast<std::size_t>(entries) * sizeof(double);
  return {bytes, std::max<index_t>(1, static_cast<index_t>(tuning::gram_tiles_bytes / bytes))};
}

/// G, R and, in the slots, X of matrices first .. first + count - 1, square by square.
void enqueue_squares(const FactorJob& job, Launcher& launch, const FactorShape& shape, int first,
                     int count) {
  const Buffer& work = job.slots;
  const index_t n = tiles(job.problem), squares = ceil_divide(n, 2);
  const int lanes = warp_lanes(job.params), group_size = warps * lanes;
  const index_t slabs = gram_slabs(job.problem);
  launch("form_gram", count * pairs(job.problem) * slabs, group_size, job.a, work, shape, first);
  if (slabs > 1) {
    constexpr index_t entries = 64 * 64;  // TILE_ENTRIES
    launch("add_gram_slabs", count * pairs(job.problem) * entries / ADD_GROUP, ADD_GROUP, work,
           shape);
  }
  for (int b = 0; b < squares; ++b) {
    // Row pair d has d + 1 tile pairs in each of its rows; of the square's own rows b are left of
    // it.
    const index_t further = squares * (squares + 1) - (b + index_t{1}) * (b + 2);
    const int targets = b > 0 ? static_cast<int>(2 * b + further) : 0;
    launch("update_trailing", count * (1 + index_t{targets}), square_warps * lanes, job.r, work,
           shape, first, count, b, targets);
    launch("form_panel", count * (n - std::min<index_t>(2, n - 2 * b) + 1), group_size, job.r, work,
           shape, first, b);
  }
}

/// strips_of in probe.clh.
index_t probe_strips(const Problem& p) {
  return std::min(index_t{MOST_STRIPS}, ceil_divide(p.m, index_t{PROBE_ROWS}));
}

/// When Q is measured where the guard leaves it in doubt (probe.clh): before the guard, for all
/// matrices; after it; or after all matrices, by a group for each.
enum class Measurement { none, before, after, at_the_end };

Measurement measurement(const Problem& p, index_t count) {
  if (!p.wants_q()) return Measurement::none;
  if (count >= tuning::gram_tiles_measured_batch) return Measurement::at_the_end;
  const bool is_square = p.m < tuning::gram_tiles_doubtful * p.n;
  return is_square ? Measurement::before : Measurement::after;
}

/// The largest mean of the squared results of the probes with which Q is kept.
double most_probed(const Problem& p) {
  const double bar = orthogonality_bar(p);
  return bar * bar / 16;
}

/// Matrices first .. first + count - 1, one slot each.
void enqueue_wave(const FactorJob& job, Launcher& launch, int first, int count) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  const Buffer &work = job.slots, &routes = job.work.front();
  const index_t n = tiles(p), rows = ceil_divide(p.m, tuning::gram_tiles_columns);
  const int lanes = warp_lanes(job.params), group_size = warps * lanes;
  if (n <= 2) {
    launch("factor_whole", count, square_warps * lanes, job.a, job.r, work, shape, first);
  } else {
    enqueue_squares(job, launch, shape, first, count);
  }
  if (p.wants_q()) {
    launch("form_q", count * rows * n, group_size, job.a, job.q, work, shape, first);
  }
  const Measurement when = measurement(p, job.count);
  const auto probe = [&](int every) {
    launch("probe_q", count * probe_strips(p), group_size, job.q, routes, work, shape, first,
           every);
  };
  if (when == Measurement::before) probe(1);
  launch("finish", count, group_size, job.q, job.r, job.magnitudes, routes, work, shape, first,
         gram_limits(job), when == Measurement::before ? most_probed(p) : -1.0);
  if (when == Measurement::after) {
    probe(0);
    launch("settle_q", count, group_size, routes, work, shape, first, most_probed(p));
  }
}

/// In waves of as many matrices as the buffer has slots.
void enqueue(const FactorJob& job, Launcher& launch) {
  const std::size_t bytes = job.slots.bytes();
  const auto most = static_cast<index_t>(bytes / slots(job.problem).bytes);
  for (index_t first = 0; first < job.count; first += most) {
    enqueue_wave(job, launch, static_cast<int>(first),
                 static_cast<int>(std::min(most, job.count - first)));
  }
  if (measurement(job.problem, job.count) == Measurement::at_the_end) {
    launch("measure_q", job.count, warps * warp_lanes(job.params), job.q, job.work.front(),
           factor_shape(job.problem, job.count), most_probed(job.problem));
  }
}

}  // namespace

GpuVariant gram_tiles_variant() {
  return {.plan = {.name = "opencl/gram_tiles",
                   .summary = "float32, wider, by products in float64; guarded",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<gram_tiles_variant>,
                   .arithmetic = gram_arithmetic},
          .file = "gpu/gram/tiles/gram_tiles.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .again = reflectors_after_gram,
          .routes = flagged_routes,
          .local_bytes = local_bytes,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
