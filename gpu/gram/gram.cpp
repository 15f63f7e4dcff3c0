// SPDX-License-Identifier: Apache-2.0
// gram.cpp: few columns, real or complex, by Gram matrices in float64, in one pass for float32
// (CholeskyQR) and in two for float64 (CholeskyQR2), with a guard; what it stops goes to
// Householder reflectors. Device half: gram.cl.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gpu/check/device_check.hpp"
#include "gpu/gram/gram.hpp"
#include "gpu/gram/tuning.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/after_gram.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 2> heavy_kernels{"factor_gram", "factor_gram_twice"};

constexpr index_t block_columns = 16;
constexpr int most_lanes = 32;  // work-items of a group
constexpr int slab_rows = 16;

/// A kernel takes all matrices, or those that a guard has refused (REFUSED).
enum class Takes : bool { all, refused };

/// Whether factor_gram_twice takes them.
bool is_twice(const Problem& p, Takes takes = Takes::all) {
  return real_of(p.type) == ElementType::float64 || takes == Takes::refused;
}

/// Whether the kernel for R in float64 has the guard for one pass: few square matrices would pass.
bool tries_one_pass(const Problem& p) {
  const auto rows = static_cast<double>(p.m), least = tuning::gram_twice_one_pass_ratio;
  return is_twice(p) && !p.wants_q() && rows >= least * static_cast<double>(p.n);
}

ElementType computes_in(const Problem& p) { return real_of(p.type); }

index_t most_columns(const Problem& p, Takes takes = Takes::all) {
  return is_twice(p, takes) ? tuning::gram_twice_columns : tuning::gram_columns;
}

/// Blocks of 16 columns of a tile.
int blocks(const Problem& p) {
  return static_cast<int>(ceil_divide(std::min(most_columns(p), real_columns(p)), block_columns));
}

/// Rows of A that are copied to local memory at a time, and how often: all at once, where these are
/// few and the copies as long as they may be, or some slabs beside the products.
struct Slabs {
  int rows, stages;
};

Slabs slabs(const Problem& p, Takes takes) {
  const int rows = static_cast<int>(ceil_divide(p.m, slab_rows));
  const int columns = 16 * blocks(p);
  const bool is_ragged = p.m % slab_rows != 0 || real_columns(p) % columns != 0;
  if (is_ragged && columns <= tuning::gram_whole_columns && p.m <= tuning::gram_whole_rows) {
    return {.rows = slab_rows * rows, .stages = 1};
  }
  if (real_columns(p) <= tuning::gram_narrow_slab_columns)
    return {.rows = tuning::gram_narrow_slab_rows, .stages = 1};
  const int* stages = is_twice(p, takes) ? tuning::gram_twice_stages : tuning::gram_stages;
  return {.rows = slab_rows, .stages = std::min(rows, stages[columns / 16 - 1])};
}

/// Rows of blocks that the registers hold; the others are parked in local memory (HELD).
int held_rows(const Problem& p, Takes takes) {
  const int count = blocks(p);
  return count < 5 ? count : is_twice(p, takes) ? 3 : 4;
}

/// Whether the room of all slabs but one is also that of other numbers, and that of a pivot also
/// that of a parked block (CROWDED).
bool is_crowded(const Problem& p, Takes takes) { return blocks(p) > 4 && !is_twice(p, takes); }

/// The local arrays of a group: the slabs; the room for transposing and a pivot per block row; for
/// factor_gram `squares` and `spread`, a number per column each; for factor_gram_twice room for 16
/// numbers, and in float32 `squares`; the blocks that are parked. A crowded group has of these only
/// the slabs, the pivots and the blocks below the diagonal that are parked.
std::size_t local_bytes_of(const Problem& p, Takes takes) {
  const auto triangle = [](int rows) { return rows * (rows + 1) / 2; };
  const int count = blocks(p), columns = 16 * count;
  const Slabs slab = slabs(p, takes);
  const auto real = static_cast<int>(size_of(real_of(p.type)));
  const int entries = slab.stages * slab.rows * (columns + 16 / real);  // SLAB_LD
  const bool is_full = is_crowded(p, takes);
  const int rooms = is_full ? count : count + 1;
  const int held = held_rows(p, takes), on_diagonal = is_full ? count - held : 0;
  const int parked = triangle(count) - triangle(held) - on_diagonal;
  const int squares = is_twice(p) || is_full ? 0 : columns;
  const int numbers = is_twice(p, takes) ? 16 + squares : 2 * squares;
  const int block_room = 16 * (is_twice(p) ? 17 : 18);  // BLOCK_ROOM
  const int doubles = rooms * block_room + numbers + parked * 16 * 16;
  return static_cast<std::size_t>(entries * real) +
         static_cast<std::size_t>(doubles) * sizeof(double);
}

std::size_t local_bytes(const Problem& p, const Limits&) { return local_bytes_of(p, Takes::all); }

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = gram_objection(p, limits);
  if (!objection.empty()) return {false, objection};
  const index_t most = most_columns(p) / parts_in(p.type);
  if (p.n > most) return {false, "takes at most " + std::to_string(most) + " columns"};
  if (is_twice(p) && p.m > tuning::gram_twice_rows) {
    return {false, "takes at most " + std::to_string(tuning::gram_twice_rows) + " rows in float64"};
  }
  const std::string needs = group_objection(most_lanes, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const Fit fallback = reflectors_after_gram(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, limits.float64_products ? "products in float64, at full speed here"
                                        : "products in float64, one work-item per 32"};
}

Params params_of(const Problem& p, const Limits& limits, Takes takes) {
  const int columns = 16 * blocks(p);
  const Slabs slab = slabs(p, takes);
  const bool is_full = p.m % slab.rows == 0 && real_columns(p) % columns == 0;
  Params params{{"MMA", limits.float64_products},
                {"BLOCKS", blocks(p)},
                {"LAST", is_full ? 4 : static_cast<int>((real_columns(p) - 1) % 16 / 4 + 1)},
                {"SLAB", slab.rows},
                {"STAGES", slab.stages},
                {"WANT_Q", p.wants_q()},
                {"ONE_PASS", takes == Takes::all && tries_one_pass(p)},
                {"IN_PARTS", is_twice(p) && p.m > tuning::gram_whole_sums},
                {"FULL", is_full}};
  if (is_complex(p.type)) params["ELEMENT_PARTS"] = 2;
  if (takes == Takes::refused) {
    params["REFUSED"] = 1;
    params["SHARES_ROOM"] = 0;
  }
  return params;
}

Params tune(const Problem& p, const Limits& limits) { return params_of(p, limits, Takes::all); }

/// The largest ||D X||_F^2 with which one pass gives R in float64 (departure.clh).
double most_in_one(const FactorJob& job) {
  if (job.params.contains(unguarded)) return std::numeric_limits<double>::infinity();
  return most_in_one_pass(job.problem, job.problem.m);
}

std::vector<std::size_t> workspace(const Problem& p) {
  return is_twice(p) ? first_q_workspace(reflectors_after_gram(p), p)
                     : flagged_workspace(reflectors_after_gram(p), p);
}

const Buffer& first_q(const FactorJob& job) {
  return place_of_first_q(reflectors_after_gram(job.problem), job);
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const Buffer& routes = job.work.front();
  if (is_twice(p)) {
    launch("factor_gram_twice", job.count, warp_lanes(job.params), job.a, job.q, job.r, routes,
           first_q(job), factor_shape(real_form(p), job.count), job.magnitudes, most_in_one(job));
    return;
  }
  launch("factor_gram", job.count, warp_lanes(job.params), job.a, job.q, job.r, job.magnitudes,
         routes, factor_shape(real_form(p), job.count), gram_limits(job));
}

// ---- refused matrices

/// The entries of X of a group, from the same place of 16 bytes on as a matrix of A.
index_t entries_of_x(const Problem& p) { return (p.m * p.n + 7) / 4 * 4; }

Slots refused_slots(const Problem& p) {
  const index_t entries = p.wants_q() ? 1 : entries_of_x(p);
  return {static_cast<std::size_t>(entries) * size_of(p.type), std::numeric_limits<index_t>::max()};
}

bool takes_refused(const Problem& p, const Limits& limits) {
  return !is_complex(p.type) && p.n <= most_columns(p, Takes::refused) &&
         p.m <= tuning::gram_twice_rows && gram_objection(p, limits).empty() &&
         group_objection(most_lanes, local_bytes_of(p, Takes::refused), limits).empty() &&
         has_room_for_slot(refused_slots(p), p, limits);
}

Params refused_params(const Problem& p, const Limits& limits) {
  return params_of(p, limits, Takes::refused);
}

/// A warp takes all passes of a matrix at once.
void enqueue_refused(const FurtherJob& job, PassRange, Launcher& launch) {
  const Problem& p = job.problem;
  GroupPasses how = passes_of_refused(p);
  how.noise /= std::sqrt(static_cast<double>(p.m));  // of an entry, where it is of a column
  how.slot = entries_of_x(p);
  in_waves(job, refused_slots(p), [&](index_t first, index_t count) {
    how.first = first;
    launch("factor_gram_twice", count, warp_lanes(job.params), job.a, job.q, job.r, job.routes,
           job.slots, factor_shape(p, job.count), how);
  });
}

}  // namespace

FurtherRoute warp_passes() {
  return {.file = "gpu/gram/gram.cl",
          .fits = takes_refused,
          .tune = refused_params,
          .slots = refused_slots,
          .enqueue = enqueue_refused,
          .finds = Finds::routes,
          .heavy_kernels = heavy_kernels};
}

GpuVariant gram_variant() {
  return {.plan = {.name = "opencl/gram",
                   .summary = "few columns, real or complex, by Gram matrices; guarded",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<gram_variant>,
                   .arithmetic = gram_arithmetic,
                   .numbers = Numbers::both},
          .file = "gpu/gram/gram.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .again = reflectors_after_gram,
          .routes = flagged_routes,
          .first_q = first_q,
          .local_bytes = local_bytes,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
