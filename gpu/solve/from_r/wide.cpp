// SPDX-License-Identifier: Apache-2.0
// wide.cpp: which wide systems a device takes, buffers and launches. Device half: wide.cl.
#include "gpu/solve/from_r/wide.hpp"

#include <fmt/format.h>

#include <utility>

#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/from_r/system_params.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

constexpr int turn_group = 128;  // TURN_GROUP of wide.cl

void enqueue_turn(const SystemJob& job, const Params&, Launcher& launch) {
  const index_t columns = job.shape.count * static_cast<index_t>(job.wide.length);
  launch("turn_columns", ceil_divide(columns, turn_group), turn_group, job.wide.a, job.a,
         job.wide.scaled, job.wide.weights, static_cast<std::int64_t>(columns), job.wide.length);
}

index_t groups_of(const SystemJob& job, const Params& params) {
  return ceil_divide(job.shape.count * static_cast<index_t>(job.shape.sides), params.at("TEAMS"));
}

void enqueue_solution(const SystemJob& job, const Params& params, Launcher& launch) {
  const WideBuffers& wide = job.wide;
  launch("solve_wide", groups_of(job, params), system_group_size(params), job.a, job.b, job.r,
         job.x, wide.weights, job.findings, wide.multipliers, job.shape, wide.length);
}

void enqueue_check(const SystemJob& job, const Params& params, Launcher& launch) {
  const WideBuffers& wide = job.wide;
  launch("check_wide", groups_of(job, params), system_group_size(params), job.a, job.b, job.x,
         wide.weights, wide.of_r, job.findings, wide.multipliers, wide.least_norms, job.errors,
         job.shape, wide.length);
}

constexpr std::string_view file = "gpu/solve/from_r/wide.cl";

std::size_t bytes_of(index_t entries, std::size_t each) {
  return static_cast<std::size_t>(entries) * each;
}

}  // namespace

SolveProblem turned(const SolveProblem& problem) {
  SolveProblem p = problem;
  std::swap(p.m, p.n);
  p.has_weights = p.weighs_each = p.skips_missing = false;
  return p;
}

std::string wide_objection(const SolveProblem& p, const Limits& limits) {
  if (p.rank.is_basic) return "fewer rows than columns, and a basic solution is asked for";
  if (p.n > tuning::solve_group_rows)
    return fmt::format("fewer rows than columns, which are more than {}", tuning::solve_group_rows);
  return system_objection(turned(p), limits);
}

std::size_t wide_bytes(const SolveProblem& p, index_t sides) {
  return bytes_of(2 * p.m * p.n, size_of(p.type)) +
         bytes_of((p.m + 1) * sides + p.n, sizeof(double)) + sizeof(FactorFindings);
}

WideBuffers wide_buffers(const SolveProblem& p, index_t count, index_t sides, int set,
                         SystemPool& pool) {
  using L = SystemLayout;
  const auto take = [&](L::Entry entry, std::size_t bytes) {
    return pool.grown({set, entry}, bytes * static_cast<std::size_t>(count));
  };
  return {.a = {},
          .scaled = take(L::wide_scaled, bytes_of(p.m * p.n, size_of(p.type))),
          .weights = take(L::wide_weights, bytes_of(p.n, sizeof(double))),
          .of_r = take(L::wide_of_r, sizeof(FactorFindings)),
          .multipliers = take(L::wide_multipliers, bytes_of(p.m * sides, sizeof(double))),
          .least_norms = take(L::wide_least_norms, bytes_of(sides, sizeof(double))),
          .length = static_cast<int>(p.n)};
}

SystemStep wide_turn(const SolveProblem& p, const Limits& limits) {
  return {file, system_params(p.m, p.type, limits), enqueue_turn};
}

std::vector<SystemStep> wide_solution(const SolveProblem& p, const Limits& limits) {
  return after_mirror({file, system_params(p.m, p.type, limits), enqueue_solution});
}

SystemStep wide_check(const SolveProblem& p, const Limits& limits) {
  return {file, system_params(p.m, p.type, limits), enqueue_check};
}

}  // namespace qrtool
