// SPDX-License-Identifier: Apache-2.0
// normal_sums.cpp: the sizes and launches of the sums. Device half: normal_sums.cl.
#include "gpu/solve/normal/normal_sums.hpp"

#include <algorithm>

#include "gpu/products/tall_sums.hpp"

namespace qrtool {
namespace {

// COMBINE_GROUP and AT_ONCE of normal_sums.cl.
constexpr int combine_group = 256;
constexpr index_t combined_at_once = 32;

/// COLUMNS_OF_A^2 + COLUMNS_OF_A, those of A'A and A'b.
index_t numbers_of(index_t n) { return n * n + n; }

Params params_for(index_t n, ElementType type, const Limits& limits) {
  const int body = row_sums_body(limits);
  return {{"COLUMNS_OF_A", static_cast<int>(n)},
          {"GRAM_BODY", body},
          {"GRAM_GROUP", row_sums_group(n, body)},
          {"HAS_RIGHT_SIDE", 1},
          {"DOUBLE_ROWS", type == ElementType::float64}};
}

void enqueue(const SystemJob& job, const Params& params, Launcher& launch) {
  const index_t n = params.at("COLUMNS_OF_A"), count = job.shape.count;
  const SlabShape slabs = row_sums_slabs(job.shape.m, n);
  launch("sum_normal_slabs", count * slabs.count, params.at("GRAM_GROUP"), job.a, job.b,
         job.tall.partial, job.shape, slabs);
  launch("combine_normal", count * ceil_divide(numbers_of(n), combined_at_once), combine_group,
         job.tall.partial, job.tall.sums, slabs);
}

}  // namespace

std::string normal_sums_objection(index_t n, ElementType type, const Limits& limits) {
  const Params params = params_for(n, type, limits);
  const RowSums sums{.n = n, .type = type, .body = params.at("GRAM_BODY"), .has_right_side = true};
  const std::string of_sums = row_sums_objection(sums);
  if (!of_sums.empty()) return of_sums;
  return group_objection(std::max(params.at("GRAM_GROUP"), combine_group),
                         row_sums_local_bytes(sums), limits);
}

NormalSumsBytes normal_sums_bytes(index_t m, index_t n) {
  const std::size_t sums = static_cast<std::size_t>(numbers_of(n)) * sizeof(double);
  return {.partial = sums * static_cast<std::size_t>(row_sums_slabs(m, n).count), .sums = sums};
}

SystemStep normal_sums_step(const SolveProblem& p, const Limits& limits) {
  return {"gpu/solve/normal/normal_sums.cl", params_for(p.n, p.type, limits), enqueue};
}

}  // namespace qrtool
