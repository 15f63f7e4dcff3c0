// SPDX-License-Identifier: Apache-2.0
// reconstruct.cpp: V, tau and LAPACK's signs from Q and R of a variant by Gram matrices; what its
// guard or this step refuses goes to Householder reflectors. Device half: reconstruct.cl.
#include <algorithm>

#include "gpu/check/device_check.hpp"
#include "gpu/composed/leading/leading.hpp"
#include "gpu/composed/reconstruct/reconstruct.hpp"
#include "gpu/composed/reconstruct/tuning.hpp"
#include "gpu/gram/gram.hpp"
#include "gpu/gram/group/gram_group.hpp"
#include "gpu/gram/tiles/gram_tiles.hpp"
#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/after_gram.hpp"
#include "gpu/reflectors/tall/tall.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 16;
constexpr index_t most_blocks = 8;       // MOST_BLOCKS
constexpr int form_group = 256;          // FORM_GROUP
constexpr index_t form_entries = 4096;   // FORM_ENTRIES
constexpr index_t tile_side = 64;        // FORM_TILE
constexpr int tile_warps = 4;            // TILE_GROUP_SIZE
constexpr std::size_t block_room = 288;  // BLOCK_ROOM
constexpr std::size_t whole_blocks = 5;  // IS_WHOLE
constexpr std::size_t rest_terms = 16;   // REST_TERMS

bool is_raw(const Problem& p) { return p.mode == Mode::raw; }

ElementType computes_in(const Problem&) { return ElementType::float64; }

/// The same matrices with Q and a positive diagonal of R.
Problem inner_problem(const Problem& p) {
  Problem inner = p;
  inner.mode = Mode::reduced;
  inner.sign = Sign::positive;
  return inner;
}

/// The variant that makes Q and R, by the shape alone.
GpuVariant inner_variant(const Problem& p) {
  if (p.m < p.n) return leading_variant();
  if (p.type == ElementType::float32) {
    const bool is_tall = p.m >= tuning::reconstruct_tall_rows && p.n <= tuning::tall_max_columns;
    if (is_tall) return tall_variant();
    return p.n <= tuning::gram_columns ? gram_variant() : gram_tiles_variant();
  }
  if (p.n <= tuning::reconstruct_gram_columns && p.m <= tuning::reconstruct_gram_rows)
    return gram_variant();
  const bool has_group = p.n >= tuning::gram_group_least_columns &&
                         p.n <= tuning::gram_group_most_columns &&
                         p.m <= tuning::reconstruct_group_rows;
  return has_group ? gram_group_variant() : gram_twice_variant();
}

std::string arithmetic(const Problem& p) {
  return inner_variant(p).plan.arithmetic(inner_problem(p));
}

/// Blocks of 16 columns of a square, which has as many warps.
index_t blocks(const Problem& p) {
  return std::min(ceil_divide(p.k(), block_columns), most_blocks);
}
index_t square_rows(const Problem& p) { return blocks(p) * block_columns; }
/// Warps that divide strips of 16 rows together: as many as a square has, or as the largest one.
index_t strip_warps(const Problem& p) {
  return p.m >= tuning::reconstruct_many_rows ? most_blocks : blocks(p);
}

/// Whether the columns of Q are more than one square.
bool has_squares(const Problem& p) { return p.k() > square_rows(p); }
/// Rows that V is computed of: for signs alone those of U.
index_t rows(const Problem& p) { return is_raw(p) ? p.m : p.k(); }

/// The shape for the first square, and the size of a matrix's work memory.
ReconstructShape shape_of(const Problem& p) {
  ReconstructShape form{};
  const index_t side = square_rows(p), below = std::max<index_t>(rows(p) - side, 0);
  const index_t b = blocks(p), rows_at_once = block_columns * strip_warps(p);
  const index_t pieces = ceil_divide(tuning::reconstruct_warps, strip_warps(p));
  const index_t steps = std::max<index_t>(1, ceil_divide(below, rows_at_once * pieces));
  const index_t block_entries = block_columns * block_columns;
  form.rows = static_cast<int>(rows(p));
  form.columns = static_cast<int>(p.k());
  form.group_rows = static_cast<int>(rows_at_once * steps);
  form.rows_of_group = static_cast<int>(std::max<index_t>(1, form_entries / p.n));
  form.stores = is_raw(p) || has_squares(p);
  form.from_ld = form.columns;
  form.from_stride = p.m * p.k();
  form.x_ld = static_cast<int>(is_raw(p) ? p.n : p.k());
  form.x_stride = is_raw(p) ? p.m * p.n : p.k() * p.k();
  const auto take = [&](index_t count) { return take_place(form.slot, count); };
  take(1);  // whether it is refused
  form.signs = take(p.k());
  form.sums = take(form.stores ? 2 * p.k() * (1 + ceil_divide(below, form.group_rows)) : 0);
  const bool has_more = below > 0 || has_squares(p);
  form.upper = take(has_more ? b * (b - 1) / 2 * block_entries : 0);
  form.lower = take(has_squares(p) ? b * (b - 1) / 2 * block_entries : 0);
  form.inverses = take(has_more ? 2 * b * block_entries : 0);
  return form;
}

/// Of reconstruct_square; of reconstruct_rows where a matrix has further rows, and of
/// reconstruct_columns (STAGED_ENTRIES); of update_rest (REST_ENTRIES); of finish_form.
std::size_t local_bytes(const Problem& p, const Limits&) {
  const auto count = static_cast<std::size_t>(blocks(p)), side = 16 * count;
  const std::size_t factor =
      sizeof(double) * (2 * (count + 1) * block_room + side) + sizeof(int) * (count + 1);
  const std::size_t staged =
      256 * (count <= whole_blocks ? count * (count + 1) / 2 : 2 * count - 1);
  const auto warps = static_cast<std::size_t>(strip_warps(p));
  const std::size_t divided = sizeof(double) * (staged + 2 * warps * side);
  const std::size_t real = size_of(p.type), row_of_u = tile_side + (real == 8 ? 4 : 8);
  const std::size_t stage = real * (tile_side * (rest_terms + 4) + rest_terms * row_of_u);
  return std::max(
      {factor, divided, blocks(p) == most_blocks ? 2 * stage : 0, sizeof(double) * 2 * form_group});
}

Fit fits(const Problem& p, const Limits& limits) {
  for (const std::string& objection : {general_objection(p, limits), products_objection(limits)}) {
    if (!objection.empty()) return {false, objection};
  }
  const bool has_sign = p.sign == Sign::lapack && p.mode != Mode::complete;
  if (!is_raw(p) && !has_sign) return {false, "gives V and tau, or R with LAPACK's signs"};
  if (p.arithmetic != Arithmetic::any) return {false, "in any arithmetic of that accuracy"};
  if (p.k() < 1) return {false, "takes one row and one column or more"};
  const Fit inner = inner_variant(p).plan.fits(inner_problem(p), limits);
  if (!inner.ok) return inner;
  const std::string needs = group_objection(form_group, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const Fit fallback = reflectors_after_gram(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, "V and signs from Q and R of " + std::string(inner_variant(p).plan.name)};
}

Params tune(const Problem& p, const Limits& limits) {
  return {{"MMA", limits.float64_products},
          {"VECTOR", std::min({aligned_entries(p.n), aligned_entries(p.k()), 2})},
          {"BLOCKS", static_cast<int>(blocks(p))},
          {"STRIP_WARPS", static_cast<int>(strip_warps(p))}};
}

/// The buffers after those of `again`: the work memory; Q and R where they are no results; X where
/// it is not V. The buffers of the variant that makes Q follow.
enum WorkBuffer : std::size_t { slot, own_q, own_r, own_x, inner_buffers };

const Buffer& own_buffer(const FactorJob& job, WorkBuffer which) {
  return job
      .work[flagged_workspace(reflectors_after_gram(job.problem), job.problem).size() + which];
}

/// The reflectors of the variant that makes Q do not run.
std::vector<std::size_t> inner_workspace(const Problem& p) {
  const GpuVariant variant = inner_variant(p);
  const Problem inner = inner_problem(p);
  std::vector<std::size_t> bytes = variant.workspace(inner);
  if (variant.again != nullptr) {
    const std::size_t unused = flagged_workspace(variant.again(inner), inner).size();
    std::fill(bytes.begin() + 1, bytes.begin() + static_cast<std::ptrdiff_t>(unused), 0);
  }
  return bytes;
}

std::vector<std::size_t> workspace(const Problem& p) {
  const auto bytes = [&](index_t entries) {
    return size_of(p.type) * static_cast<std::size_t>(entries);
  };
  std::vector<std::size_t> all = flagged_workspace(reflectors_after_gram(p), p);
  all.push_back(static_cast<std::size_t>(shape_of(p).slot) * sizeof(double));
  all.push_back(bytes(p.wants_q() ? 0 : p.m * p.k()));
  all.push_back(bytes(is_raw(p) ? p.k() * p.n : 0));
  all.push_back(bytes(has_squares(p) && !is_raw(p) ? p.k() * p.k() : 0));
  for (const std::size_t inner : inner_workspace(p)) all.push_back(inner);
  return all;
}

Slots slots(const Problem& p) {
  const GpuVariant variant = inner_variant(p);
  return variant.slots == nullptr ? Slots{} : variant.slots(inner_problem(p));
}

const Buffer& q_of(const FactorJob& job) {
  return job.problem.wants_q() ? job.q : own_buffer(job, own_q);
}
const Buffer& r_of(const FactorJob& job) {
  return is_raw(job.problem) ? own_buffer(job, own_r) : job.r;
}

FactorJob inner_job(const FactorJob& job, const Problem& problem, const Params& params) {
  const std::size_t before =
      flagged_workspace(reflectors_after_gram(job.problem), job.problem).size() + inner_buffers;
  return {problem,        params,
          job.count,      job.a,
          q_of(job),      r_of(job),
          job.v,          job.tau,
          job.magnitudes, {job.work.begin() + static_cast<std::ptrdiff_t>(before), job.work.end()},
          job.slots};
}

/// The squares one after another.
void enqueue_squares(const FactorJob& job, ReconstructShape form, const Buffer& routes,
                     Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  const Buffer& work = own_buffer(job, slot);
  const Buffer& x = is_raw(p) ? job.v : own_buffer(job, own_x);
  Buffer from = q_of(job);
  const index_t side = square_rows(p), below_first = std::max<index_t>(form.rows - side, 0);
  const int group = static_cast<int>(blocks(p)) * warp_lanes(job.params);
  const int four_warps = tile_warps * warp_lanes(job.params);
  const index_t strips = strip_warps(p);
  const int strip_group = static_cast<int>(strips) * warp_lanes(job.params);
  if (has_squares(p)) {
    launch("copy_q", job.count * ceil_divide(form.rows * p.k(), form_entries), form_group, from, x,
           shape, form);
    from = x;
    form.from_ld = form.x_ld;
    form.from_stride = form.x_stride;
  }
  for (index_t first = 0; first < p.k(); first += side) {
    const index_t below = std::max<index_t>(below_first - first, 0);
    const index_t right = std::max<index_t>(p.k() - first - side, 0);
    form.first = static_cast<int>(first);
    form.width = static_cast<int>(std::min(side, p.k() - first));
    form.pieces = static_cast<int>(ceil_divide(below, form.group_rows));
    form.saves = below > 0 || right > 0;
    launch("reconstruct_square", job.count, group, job.a, from, x, routes, work, shape, form);
    launch("reconstruct_rows", job.count * form.pieces, strip_group, from, x, work, shape, form);
    launch("reconstruct_columns", job.count * ceil_divide(right, block_columns * strips),
           strip_group, x, work, shape, form);
    launch("update_rest", job.count * ceil_divide(right, tile_side) * ceil_divide(below, tile_side),
           four_warps, x, work, shape, form);
  }
}

void enqueue(const FactorJob&, Launcher&) {}

void enqueue_rest(const FactorJob& job, const FactorJob& made, Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  const GpuVariant variant = inner_variant(p);
  const Buffer* known = variant.routes == nullptr ? nullptr : variant.routes(made);
  const Buffer& own = job.work.front();
  const Buffer& routes = known == nullptr ? own : *known;
  ReconstructShape form = shape_of(p);
  form.routes = known == nullptr           ? ROUTES_NONE
                : variant.again != nullptr ? ROUTES_MAY_BE_OPEN
                                           : ROUTES_KNOWN;
  enqueue_squares(job, form, routes, launch);
  const Buffer& work = own_buffer(job, slot);
  if (is_raw(p)) {
    launch("finish_form", job.count * ceil_divide(p.k(), form.rows_of_group), form_group, r_of(job),
           job.v, job.tau, routes, own, job.magnitudes, work, shape, form);
    return;
  }
  const index_t entries = p.m * p.q_cols() + p.k() * p.n;
  launch("flip_factors", job.count * ceil_divide(entries, form_entries), form_group, job.q, job.r,
         routes, own, job.magnitudes, work, shape, form);
}

}  // namespace

GpuVariant reconstruct_variant() {
  return {.plan = {.name = "opencl/reconstruct",
                   .summary = "V, tau and LAPACK's signs, from Q and R by Gram matrices",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<reconstruct_variant>,
                   .arithmetic = arithmetic},
          .file = "gpu/composed/reconstruct/reconstruct.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .inner = {.variant = inner_variant,
                    .problem = inner_problem,
                    .job = inner_job,
                    .enqueue = enqueue_rest,
                    .leaves_refused = true},
          .again = reflectors_after_gram,
          .routes = flagged_routes,
          .local_bytes = local_bytes};
}

}  // namespace qrtool
