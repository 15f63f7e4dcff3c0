// SPDX-License-Identifier: Apache-2.0
// leading.cpp: the host half of leading.cl: wide matrices by their leading square block (LAPACK
// geqrf, ormqr). Another variant factors the block.
#include <algorithm>
#include <limits>
#include <numeric>

#include "gpu/check/device_check.hpp"
#include "gpu/composed/leading/leading.hpp"
#include "gpu/composed/leading/tuning.hpp"
#include "gpu/gram/gram.hpp"
#include "gpu/gram/tiles/gram_tiles.hpp"
#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/small/small.hpp"

namespace qrtool {
namespace {

constexpr int strip_group = 128;        // STRIP_GROUP
constexpr int side = 8;                 // ITEMS_ACROSS
constexpr index_t tile_columns = 64;    // TILE_SIDE
constexpr int slab = 16;                // STAGE_TERMS
constexpr int look_group = 256;         // LOOK_GROUP
constexpr index_t look_entries = 2048;  // LOOK_ENTRIES

/// Float32 with few rows, whose bar leaves no room for rounding errors, is summed in float64.
ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows); }
/// The leading m x m blocks, with Q.
Problem leading_problem(const Problem& p) {
  Problem block = p;
  block.n = p.m;
  block.mode = Mode::reduced;
  return block;
}

/// The variant that factors them.
GpuVariant leading_variant_of(const Problem& p) {
  if (p.m <= tuning::leading_small_rows) return small_variant();
  if (p.m <= tuning::leading_gram_rows) return gram_variant();
  return p.type == ElementType::float32 ? gram_tiles_variant() : gram_twice_variant();
}

std::string arithmetic(const Problem& p) {
  return leading_variant_of(p).plan.arithmetic(leading_problem(p));
}

bool has_strips(const Problem& p) { return p.m <= tuning::leading_strip_rows; }

/// Entries of 16 bytes; the columns of a strip.
index_t word(const Problem& p) { return 16 / static_cast<index_t>(size_of(p.type)); }

/// Adjacent entries that are loaded at once.
index_t piece(const Problem& p) { return std::gcd(std::gcd(p.m, p.n), word(p)); }

index_t row_tiles(const Problem& p) { return ceil_divide(p.m, index_t{side * side}); }

/// Whether matrix units multiply, 16 rows at a time (UNITS).
bool has_units(const Problem& p, const Limits& limits) {
  return p.type == ElementType::float64 && limits.float64_products;
}

/// Rows of R of a work-item: all of a strip, or an equal part of those of a tile.
index_t own_rows(const Problem& p, const Limits& limits) {
  if (has_strips(p)) return p.m;
  const index_t rows = ceil_divide(p.m, side * row_tiles(p));
  return has_units(p, limits) ? (rows + 1) / 2 * 2 : rows;
}

std::size_t local_bytes(const Problem& p, const Limits& limits) {
  if (has_strips(p)) return sizeof(int) * strip_group;
  const int ld = side * side + (has_units(p, limits) ? 4 : 0);  // TERM_LD
  return size_of(p.type) * static_cast<std::size_t>(4 * slab * ld) + sizeof(int);
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  if (p.mode == Mode::raw || p.sign != Sign::positive || p.arithmetic != Arithmetic::any) {
    return {false, "gives Q and R with a positive diagonal, in any arithmetic of that accuracy"};
  }
  if (p.m >= p.n || p.m < 1 || p.m > tuning::leading_most_rows) {
    return {false,
            "takes 1 to " + std::to_string(tuning::leading_most_rows) + " rows and more columns"};
  }
  if (p.m * p.n > std::numeric_limits<int>::max()) return {false, "takes up to 2^31 - 1 entries"};
  const std::string needs = group_objection(look_group, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const Fit block = leading_variant_of(p).plan.fits(leading_problem(p), limits);
  if (!block.ok) return block;
  return {true, "the leading square block, then one product"};
}

Params tune(const Problem& p, const Limits& limits) {
  return {{"MMA", limits.float64_products},
          {"STRIPS", has_strips(p)},
          {"ITEM_ROWS", static_cast<int>(own_rows(p, limits))},
          {"PIECE", static_cast<int>(piece(p))}};
}

/// A1, R1, Q if it is not wanted, the magnitude codes of A1, and the buffers of the block's
/// variant.
std::vector<std::size_t> workspace(const Problem& p) {
  const Problem block = leading_problem(p);
  std::vector<std::size_t> bytes = leading_variant_of(p).workspace(block);
  const std::size_t square = block.input_bytes();
  bytes.insert(bytes.begin(), {square, square, p.wants_q() ? 0 : square, sizeof(int)});
  return bytes;
}

Slots slots(const Problem& p) {
  const GpuVariant variant = leading_variant_of(p);
  return variant.slots == nullptr ? Slots{} : variant.slots(leading_problem(p));
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  launch("take_leading", ceil_divide(job.count * p.m * p.m, look_entries), look_group, job.a,
         job.work[0], job.magnitudes, shape);
}

FactorJob leading_job(const FactorJob& job, const Problem& problem, const Params& params) {
  return {problem,     params, job.count, job.work[0], job.problem.wants_q() ? job.q : job.work[2],
          job.work[1], job.v,  job.tau,   job.work[3], {job.work.begin() + 4, job.work.end()},
          job.slots};
}

void enqueue_rest(const FactorJob& job, const FactorJob&, Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  const Buffer& q = p.wants_q() ? job.q : job.work[2];
  if (has_strips(p)) {
    launch("multiply_strips", ceil_divide(job.count * ceil_divide(p.n - p.m, word(p)), strip_group),
           strip_group, job.a, q, job.r, job.magnitudes, job.work[3], shape);
  } else {
    launch("multiply_tiles", job.count * row_tiles(p) * ceil_divide(p.n - p.m, tile_columns),
           side * side, job.a, q, job.r, job.magnitudes, job.work[3], shape);
  }
  launch("store_leading", ceil_divide(job.count * p.m * p.m, look_entries), look_group, job.work[1],
         q, job.r, job.magnitudes, shape);
}

/// The routes of the block's variant, which are its first buffer.
const Buffer* routes(const FactorJob& job) {
  return leading_variant_of(job.problem).routes == nullptr ? nullptr : &job.work[4];
}

}  // namespace

GpuVariant leading_variant() {
  return {.plan = {.name = "opencl/leading",
                   .summary = "wide, to 512 rows; the leading square block, then a product",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<leading_variant>,
                   .arithmetic = arithmetic},
          .file = "gpu/composed/leading/leading.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .inner = {.variant = leading_variant_of,
                    .problem = leading_problem,
                    .job = leading_job,
                    .enqueue = enqueue_rest},
          .routes = routes,
          .local_bytes = local_bytes};
}

}  // namespace qrtool
