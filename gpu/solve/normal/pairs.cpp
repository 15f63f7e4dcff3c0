// SPDX-License-Identifier: Apache-2.0
// pairs.cpp: sizes, buffers and launches of pairs.cl, of its products, and of what follows them.
#include "gpu/solve/normal/pairs.hpp"

#include <algorithm>

#include "gpu/products/product.hpp"
#include "gpu/solve/from_r/system_params.hpp"
#include "gpu/solve/from_r/tall_systems.hpp"
#include "gpu/solve/input/weights.hpp"
#include "gpu/solve/normal/normal_group.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

// PAIRS_GROUP, TURNED_SIDE and TURNED_GROUP of pairs.cl.
constexpr int pairs_group = 128, turned_group = 256;
constexpr index_t turned_side = 32;

/// A distance of rows that copies of whole words want.
index_t whole(index_t entries) { return ceil_divide(entries, 4) * 4; }

index_t pairs_of(index_t n) { return n * (n + 1) / 2; }

std::size_t bytes_of(index_t entries, std::size_t of_one) {
  return static_cast<std::size_t>(entries) * of_one;
}

/// The bytes of the buffers for `count` right sides; of_w and of_b take `terms` each.
struct SideBytes {
  std::size_t scaled, terms, gram, right;
};
SideBytes side_bytes(const SolveProblem& p, index_t count) {
  return {.scaled = bytes_of(count * p.m, size_of(p.type)),
          .terms = bytes_of(whole(count) * p.m, sizeof(double)),
          .gram = bytes_of(count * whole(pairs_of(p.n)), sizeof(double)),
          .right = bytes_of(count * whole(p.n), sizeof(double))};
}

Params params_of_products(const Limits& limits) {
  const ProductBody body = limits.float64_products ? ProductBody::doubles : ProductBody::fma;
  Params params = product_params(ElementType::float64, body, /*alignment=*/4, /*narrow=*/64,
                                 limits.has_nvidia_mma);
  settle_after(params, tuning::solve_group_rows);
  return params;
}

void enqueue_weights_and_pairs(const SystemJob& job, const Params&, Launcher& launch) {
  const PairBuffers& p = job.pairs;
  const int m = job.shape.m, count = job.shape.count, n = static_cast<int>(job.n);
  const auto skips = static_cast<int>(p.skips_missing);
  launch("pairs_of_rows", m, pairs_group, job.a, p.pairs, p.wide, p.gaps, n, p.gram_ld, p.right_ld,
         skips);
  launch("weigh_sides", count, pairs_group, job.b, p.weights, p.gaps, p.scaled, p.exponents,
         p.left_out, m, p.shares_weights ? 0 : m, static_cast<int>(p.has_weights), skips);
  launch("turn_sides", ceil_divide(m, turned_side) * ceil_divide(whole(count), turned_side),
         turned_group, p.scaled, job.b, p.of_w, p.of_b, m, count, static_cast<int>(whole(count)));
}

/// Z = A'B of matrices with m rows.
void enqueue_product(const SystemJob& job, const Params& params, Launcher& launch, const Buffer& a,
                     const Buffer& b, int columns, const Buffer& z) {
  ProductShape shape{};
  shape.count = shape.slabs = 1;
  shape.rows = job.shape.count;
  shape.lda = static_cast<int>(whole(job.shape.count));
  shape.cols = shape.ldb = shape.ldc = columns;
  shape.depth = shape.slab_depth = job.shape.m;
  enqueue_transposed(launch, params, ProductKind::wide, shape, {}, a, b, b, z);
}

void enqueue_products(const SystemJob& job, const Params& params, Launcher& launch) {
  const PairBuffers& p = job.pairs;
  enqueue_product(job, params, launch, p.of_w, p.pairs, p.gram_ld, p.gram);
  enqueue_product(job, params, launch, p.of_b, p.wide, p.right_ld, p.right);
}

void enqueue_check(const SystemJob& job, const Params& params, Launcher& launch) {
  launch("check_weighed_sides", ceil_divide(job.shape.count, params.at("TEAMS")),
         system_group_size(params), job.a, job.b, job.pairs.scaled, job.pairs.exponents, job.r,
         job.x, job.findings, job.of_columns, job.errors, job.se, job.shape);
}

}  // namespace

bool takes_pairs(const SolveProblem& p, const Limits& limits) {
  const std::size_t bytes = bytes_of(p.m * whole(pairs_of(p.n)), sizeof(double));
  if (bytes > std::min(limits.max_allocation_bytes, limits.device_bytes / 8)) return false;
  const bool is_in_gap = p.n >= tuning::pairs_gap_first && p.n <= tuning::pairs_gap_last;
  return needs_weighing(p) && !is_in_gap && p.n <= tuning::normal_most_columns &&
         !is_tall_system(p.m) && weighed_group_objection(p, limits).empty();
}

MatrixBytes bytes_of_r(const MatrixBytes& of_factor) {
  MatrixBytes bytes;
  bytes.io = of_factor.io;
  bytes.io[0] = 0;
  return bytes;
}

MatrixBytes pair_bytes(const MatrixBytes& of_factor, const SolveProblem& p) {
  MatrixBytes bytes = bytes_of_r(of_factor);
  const SideBytes of_side = side_bytes(p, 1);
  bytes.work = {of_side.scaled, of_side.terms, of_side.terms, of_side.gram, of_side.right};
  return bytes;
}

PairBuffers without_buffers(const SolveProblem& p) {
  PairBuffers pairs;
  pairs.gram_ld = static_cast<int>(whole(pairs_of(p.n)));
  pairs.right_ld = static_cast<int>(whole(p.n));
  pairs.has_weights = p.has_weights;
  pairs.skips_missing = p.skips_missing;
  return pairs;
}

PairBuffers pair_buffers(const SolveProblem& p, index_t count, SystemPool& pool) {
  const auto of_rows = [&](index_t entries) { return bytes_of(p.m * entries, sizeof(double)); };
  const SideBytes bytes = side_bytes(p, count);
  int entry = 0;
  const auto take = [&](std::size_t size) { return pool.shared(++entry, size); };
  PairBuffers pairs = without_buffers(p);
  pairs.pairs = take(of_rows(whole(pairs_of(p.n))));
  pairs.wide = take(of_rows(whole(p.n)));
  pairs.gaps = take(bytes_of(p.m, sizeof(int)));
  pairs.scaled = take(bytes.scaled);
  pairs.exponents = take(bytes_of(count, sizeof(int)));
  pairs.of_w = take(bytes.terms);
  pairs.of_b = take(bytes.terms);
  pairs.gram = take(bytes.gram);
  pairs.right = take(bytes.right);
  return pairs;
}

std::vector<SystemStep> pair_solutions(const SolveProblem& p, const Limits& limits) {
  std::vector<SystemStep> steps{
      {"gpu/solve/normal/pairs.cl", {}, enqueue_weights_and_pairs},
      {"gpu/products/gemm.cl", params_of_products(limits), enqueue_products, /*in_float64=*/true}};
  steps.push_back(weighed_group_step(p, limits));
  return steps;
}

std::vector<SystemStep> pair_check(const SolveProblem& p, const Limits& limits) {
  Params params = system_params(p.n, p.type, limits);
  params.erase("MOST_STEPS");
  return {{"gpu/solve/normal/pairs_check.cl", params, enqueue_check}};
}

}  // namespace qrtool
