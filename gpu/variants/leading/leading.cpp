// SPDX-License-Identifier: Apache-2.0
// leading.cpp: the host half of leading.cl: wide matrices by their leading square block (LAPACK
// geqrf, ormqr). Another variant factors the block.
#include <limits>

#include "gpu/check/host_check.hpp"
#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

constexpr index_t columns = 64;         // COLS
constexpr int group_size = 64;          // GROUP
constexpr int slab = 16;                // SLAB
constexpr int look_group = 256;         // LOOK_GROUP
constexpr index_t look_entries = 4096;  // LOOK_ENTRIES

ElementType computes_in(const Problem& p) { return p.type; }
std::string arithmetic(const Problem& p) {
  return leading_variant_of(p).plan.arithmetic(leading_problem(p));
}

int tile_rows(const Problem& p) { return p.m <= 16 ? 16 : p.m <= 32 ? 32 : 64; }

std::size_t local_bytes(const Problem& p, const Limits&) {
  return size_of(p.type) * static_cast<std::size_t>(slab * (tile_rows(p) + columns));
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits);
  if (!objection.empty()) return {false, objection};
  if (p.mode == Mode::raw || p.sign != Sign::positive || p.arithmetic != Arithmetic::any) {
    return {false, "gives Q and R with a positive diagonal, in any arithmetic of that accuracy"};
  }
  if (p.m >= p.n || p.m < tuning::few_rows || p.m > tuning::leading_most_rows) {
    return {false, "takes " + std::to_string(tuning::few_rows) + " to " +
                       std::to_string(tuning::leading_most_rows) + " rows and more columns"};
  }
  if (p.m * p.n > std::numeric_limits<int>::max()) return {false, "takes up to 2^31 - 1 entries"};
  const std::string needs = group_objection(look_group, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const Fit block = leading_variant_of(p).plan.fits(leading_problem(p), limits);
  if (!block.ok) return block;
  return {true, "the leading square block, then one product"};
}

Fit pays(const Problem& p, const Limits& limits) {
  if (!limits.float64_products) return {false, "pays where float64 is as fast as float32"};
  if (p.n > tuning::small_max_columns || p.n >= tuning::leading_wide * p.m) return {true, {}};
  return {false, "pays for more than " + std::to_string(tuning::small_max_columns) +
                     " columns, or from " + std::to_string(tuning::leading_wide) +
                     " times as many columns as rows on"};
}

Params tune(const Problem& p, const Limits&) { return {{"ROWS", tile_rows(p)}}; }

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
  launch("clear_codes", ceil_divide(job.count, group_size), group_size, job.magnitudes, shape);
  launch("take_leading", job.count * ceil_divide(p.m * p.n, look_entries), look_group, job.a,
         job.work[0], job.magnitudes, shape);
}

FactorJob leading_job(const FactorJob& job, const Problem& problem, const Params& params) {
  return {problem,     params, job.count, job.work[0], job.problem.wants_q() ? job.q : job.work[2],
          job.work[1], job.v,  job.tau,   job.work[3], {job.work.begin() + 4, job.work.end()},
          job.slots};
}

void enqueue_rest(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  const cl::Buffer& q = p.wants_q() ? job.q : job.work[2];
  launch("store_leading", job.count * ceil_divide(p.m * p.m, look_entries), look_group, job.work[1],
         q, job.r, job.magnitudes, shape);
  launch("multiply_rest",
         job.count * ceil_divide(p.m, tile_rows(p)) * ceil_divide(p.n - p.m, columns), group_size,
         job.a, q, job.r, job.magnitudes, shape);
}

/// The routes of the block's variant, which are its first buffer.
const cl::Buffer* routes(const FactorJob& job) {
  return leading_variant_of(job.problem).routes == nullptr ? nullptr : &job.work[4];
}

std::size_t device_bytes(const Problem& p) { return device_workspace_bytes(leading_variant(), p); }

}  // namespace

Problem leading_problem(const Problem& p) {
  Problem block = p;
  block.n = p.m;
  block.mode = Mode::reduced;
  return block;
}

GpuVariant leading_variant_of(const Problem& p) {
  if (p.m <= tuning::leading_small_rows) return small_variant();
  if (p.m <= tuning::gram_columns) return gram_variant();
  return p.type == ElementType::float32 ? gram_tiles_variant() : gram_twice_variant();
}

GpuVariant leading_variant() {
  return {.plan = {.name = "opencl/leading",
                   .summary = "wide, to 512 rows; the leading square block, then a product",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes,
                   .arithmetic = arithmetic,
                   .pays = pays},
          .file = "gpu/variants/leading/leading.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .leading = {.variant = leading_variant_of, .job = leading_job, .enqueue = enqueue_rest},
          .routes = routes,
          .local_bytes = local_bytes};
}

}  // namespace qrtool
