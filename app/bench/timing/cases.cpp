// SPDX-License-Identifier: Apache-2.0
// cases.cpp: defines the published grid, limits and predictions. Nothing runs here.
#include "app/bench/timing/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/problem/operations.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr double usual_limit_seconds = 60;
constexpr double quick_limit_seconds = 5;
constexpr double quick_total_seconds = 45;
constexpr Repeats usual_repeats{.warm_up = 2, .timed = 5, .most = 1000, .warm_up_seconds = 0.02};
constexpr Repeats quick_repeats{.warm_up = 1, .timed = 3, .most = 100, .warm_up_seconds = 0.02};

/// Rates that a few CPU cores, and a GPU, can reach. They are rather too high than too low: the
/// first case must not be left out because nothing is known about it.
constexpr double usual_flops_per_second = 20e9, usual_flops_per_second_of_gpu = 500e9;
/// With less work than this, a time shows the cost of starting and not the rate.
constexpr double telling_flops = 1e7;

using Shapes = std::vector<std::pair<index_t, index_t>>;

void add_grid(std::vector<BenchCase>& cases, const Shapes& shapes,
              const std::vector<index_t>& batches) {
  for (const auto& [m, n] : shapes)
    for (const index_t batch : batches) cases.push_back({.m = m, .n = n, .batch = batch});
}

/// Returns every case with every kind.
std::vector<BenchCase> with_kinds(const std::vector<BenchCase>& cases,
                                  const std::vector<std::string>& kinds) {
  std::vector<BenchCase> all;
  for (const BenchCase& size : cases) {
    for (const std::string& kind : kinds) {
      all.push_back(size);
      all.back().kind = kind;
    }
  }
  return all;
}

}  // namespace

std::vector<BenchCase> standard_sweep() {
  std::vector<BenchCase> cases;
  add_grid(cases, {{64, 64}, {128, 64}, {256, 128}, {512, 256}},
           {100, 500, 1000, 5000, 10000, 15000});
  add_grid(cases, {{512, 512}, {1024, 512}, {5000, 5000}}, {1, 8, 16, 32});
  return cases;
}

std::vector<BenchCase> tall_sweep() {
  std::vector<BenchCase> cases;
  for (index_t n = 2; n <= 32; n *= 2)
    for (int threads = 1; threads <= 32; threads *= 2)
      cases.push_back({.m = 1600, .n = n, .batch = 1, .threads = threads});
  for (const index_t n : {2, 4})
    for (index_t m = 4; m <= 16384; m *= 4) cases.push_back({.m = m, .n = n, .batch = 1});
  add_grid(cases, {{100'000, 16}, {1'000'000, 32}, {4'000'000, 64}, {1'000'000, 128}}, {1});
  return cases;
}

std::vector<BenchCase> shapes_sweep() {
  constexpr index_t entries = 1 << 20, many_entries = 1 << 25;
  const Shapes shapes = {
      {3, 7},        {8, 8},       {12, 12},     {16, 16},     {17, 17},    {24, 24},
      {32, 32},      {33, 33},     {48, 48},     {64, 64},     {80, 80},    {96, 96},
      {128, 128},    {129, 129},   {160, 160},   {256, 256},   {512, 512},  {1024, 1024},
      {2048, 2048},  {5000, 5000}, {64, 8},      {100, 10},    {300, 20},   {128, 64},
      {200, 64},     {256, 32},    {256, 64},    {256, 128},   {512, 64},   {512, 256},
      {600, 96},     {700, 90},    {1000, 3},    {1000, 16},   {1024, 32},  {1024, 128},
      {1024, 512},   {2000, 160},  {4000, 16},   {4000, 64},   {4000, 160}, {8000, 32},
      {8000, 128},   {10000, 200}, {16000, 8},   {16000, 64},  {20000, 16}, {20000, 96},
      {20000, 160},  {40000, 40},  {40000, 160}, {40000, 320}, {100000, 4}, {100000, 64},
      {1000000, 32}, {8, 64},      {10, 100},    {64, 256},    {100, 1000}};
  // In batches that are worth the start of a device, too, with neighbours of powers of two.
  const Shapes in_large_batches = {{8, 8},       {16, 16},   {17, 17},   {32, 32},    {33, 33},
                                   {64, 64},     {65, 65},   {96, 96},   {97, 97},    {128, 128},
                                   {129, 129},   {192, 192}, {256, 256}, {257, 257},  {512, 512},
                                   {1024, 1024}, {64, 8},    {128, 64},  {256, 128},  {397, 289},
                                   {512, 256},   {1000, 16}, {4000, 64}, {1024, 128}, {64, 256}};
  std::vector<BenchCase> cases;
  for (const auto& [m, n] : shapes) {
    add_grid(cases, {{m, n}}, {1});
    if (const index_t batch = entries / (m * n); batch > 1) add_grid(cases, {{m, n}}, {batch});
  }
  for (const auto& [m, n] : in_large_batches) add_grid(cases, {{m, n}}, {many_entries / (m * n)});
  return cases;
}

std::vector<BenchCase> quick_sweep() {
  std::vector<BenchCase> cases;
  add_grid(cases, {{64, 64}}, {100, 1000, 15000});
  add_grid(cases, {{128, 64}}, {100, 1000});
  add_grid(cases, {{256, 128}, {512, 256}}, {100});
  add_grid(cases, {{512, 512}, {1024, 512}}, {1, 8});
  return cases;
}

std::vector<BenchCase> solve_sweep(BenchTask task, bool quick) {
  std::vector<BenchCase> cases;
  if (task == BenchTask::solve_weighed) {
    add_grid(cases, {{120, 4}, {200, 16}}, {10'000});
    add_grid(cases, {{288, 97}}, {1000});
    if (quick) return cases;
    add_grid(cases, {{120, 4}, {200, 16}}, {1'000'000});
    add_grid(cases, {{200, 64}, {288, 97}}, {262'144});
    return cases;
  }
  if (task == BenchTask::solve_shared) {
    add_grid(cases, {{120, 4}}, {10'000, 1'000'000});
    add_grid(cases, {{288, 97}}, {1000});
    if (quick) return cases;
    add_grid(cases, {{120, 4}}, {10'000'000});
    add_grid(cases, {{288, 97}, {1000, 200}}, {100'000});
    return cases;
  }
  add_grid(cases, {{16, 4}}, {1000, 100'000});
  add_grid(cases, {{64, 64}, {128, 64}}, {100, 1000});
  add_grid(cases, {{288, 97}}, {100});
  add_grid(cases, {{100'000, 16}}, {1});
  if (quick) return cases;
  add_grid(cases, {{16, 4}}, {1'000'000});
  add_grid(cases, {{64, 64}, {128, 64}}, {15'000});
  add_grid(cases, {{288, 97}}, {262'144});
  add_grid(cases, {{1'000'000, 32}, {4'000'000, 64}}, {1});
  return cases;
}

BenchTask task_of(const BenchOptions& o) {
  return o.weighed  ? BenchTask::solve_weighed
         : o.shared ? BenchTask::solve_shared
         : o.solve  ? BenchTask::solve
                    : BenchTask::factor;
}

ElementType type_of(const BenchOptions& o) { return o.is_complex ? complex_of(o.type) : o.type; }

std::string_view name_of(BenchTask task, Mode mode) {
  switch (task) {
    case BenchTask::factor:
      break;
    case BenchTask::solve:
      return "solve";
    case BenchTask::solve_shared:
      return "solve-shared";
    case BenchTask::solve_weighed:
      return "solve-weighed";
  }
  return name_of(mode);
}

BenchSchedule schedule_of(const BenchOptions& o) {
  BenchSchedule schedule;
  const bool is_quick = o.quick || (!o.sweep && o.shapes.empty());
  if (!o.shapes.empty()) {
    add_grid(schedule.cases, o.shapes, o.batches.empty() ? std::vector<index_t>{1} : o.batches);
  } else {
    schedule.cases = o.sweep_kind == SweepKind::tall     ? tall_sweep()
                     : o.sweep_kind == SweepKind::shapes ? shapes_sweep()
                     : o.solve                           ? solve_sweep(task_of(o), is_quick)
                     : is_quick                          ? quick_sweep()
                                                         : standard_sweep();
  }
  schedule.cases = with_kinds(schedule.cases, o.kinds);
  schedule.seeds = o.seeds;
  schedule.cell_seconds =
      o.limit_seconds.value_or(is_quick ? quick_limit_seconds : usual_limit_seconds);
  schedule.repeats = is_quick ? quick_repeats : usual_repeats;
  if (o.runs) schedule.repeats.timed = schedule.repeats.most = *o.runs;
  if (is_quick) schedule.total_seconds = quick_total_seconds;
  return schedule;
}

void forget_threads(std::vector<BenchCase>& cases) {
  for (BenchCase& size : cases) size.threads = 0;
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
}

Problem problem_of(const BenchCase& size, ElementType type, Mode mode, Sign sign) {
  return {.count = size.batch, .m = size.m, .n = size.n, .type = type, .mode = mode, .sign = sign};
}

Sign sign_of(const BenchOptions& o) {
  return o.sign.value_or(o.mode == Mode::raw ? Sign::lapack : Sign::positive);
}

SolveProblem systems_of(const Problem& p, BenchTask task, double ridge) {
  const bool is_weighed = task == BenchTask::solve_weighed;
  return {.type = p.type,
          .m = p.m,
          .n = p.n,
          .rank = {.tolerance = default_rank_tolerance(p.type, p.n)},
          .ridge = ridge,
          .has_weights = is_weighed,
          .weighs_each = is_weighed};
}

double case_flops(const BenchCase& size, ElementType type, Mode mode, BenchTask task,
                  double ridge) {
  const Problem problem = problem_of(size, type, mode);
  if (task == BenchTask::factor) return lapack_operations(problem);
  const auto rows = static_cast<double>(systems_of(problem, task, ridge).packed_rows()),
             n = static_cast<double>(size.n);
  const double least = std::min(rows, n);
  const double of_r = operations_of_r(std::max(rows, n), least),
               of_x = 4 * rows * n - least * least;
  const auto batch = static_cast<double>(size.batch);
  return operations_in(type) *
         (of_r * (task == BenchTask::solve_shared ? 1 : batch) + of_x * batch);
}

index_t systems_at_once(const Problem& p, BenchTask task, const Limits& limits) {
  constexpr std::size_t target_bytes = std::size_t{64} << 20;
  const bool is_shared = shares_matrix(task);
  // The memory has A and two copies by columns, or one copy for each thread. The vectors are b
  // twice, the weights, and x.
  const std::size_t of_vectors =
      size_of(p.type) * static_cast<std::size_t>(2 * std::max(p.m, p.n) + p.m + p.n +
                                                 (task == BenchTask::solve_weighed ? p.m : 0));
  const std::size_t fixed =
      is_shared ? p.input_bytes() * (static_cast<std::size_t>(limits.threads) + 2) : 0;
  const std::size_t each = of_vectors + (is_shared ? 0 : 3 * p.input_bytes());
  if (fixed + each > limits.host_bytes)
    throw LimitError(fmt::format("one system needs {} of host memory; the limit is {}",
                                 format_bytes(fixed + each), format_bytes(limits.host_bytes)));
  const std::size_t room = std::min(limits.host_bytes - fixed, target_bytes);
  return std::clamp<index_t>(static_cast<index_t>(room / each), 1, p.count);
}

std::string objection_to_residence(const Problem& p, std::size_t device_bytes_per_matrix,
                                   const Limits& limits) {
  const auto count = static_cast<std::size_t>(p.count);
  const std::size_t input_bytes = p.input_bytes() * count;
  const std::size_t device_bytes = device_bytes_per_matrix * count;
  const std::size_t host_bytes = input_bytes + (limits.is_cpu ? device_bytes : 0);
  if (host_bytes > limits.host_bytes)
    return fmt::format("the batch needs {} of host memory; the limit is {}",
                       format_bytes(host_bytes), format_bytes(limits.host_bytes));
  if (device_bytes > limits.device_bytes)
    return fmt::format("the batch needs {} of device memory; the device gives {}",
                       format_bytes(device_bytes), format_bytes(limits.device_bytes));
  if (input_bytes > limits.max_allocation_bytes)
    return fmt::format("the batch needs {} in one piece; the device gives {}",
                       format_bytes(input_bytes), format_bytes(limits.max_allocation_bytes));
  return {};
}

CostHistory::CostHistory(bool is_cpu, bool is_batched)
    : usual_rate_(is_cpu ? usual_flops_per_second : usual_flops_per_second_of_gpu),
      is_batched_(is_batched) {}

void CostHistory::add(const BenchCase& size, double flops, double seconds) {
  if (seconds > 0) entries_.push_back({size, flops, seconds});
}

double CostHistory::predict(const BenchCase& size, double flops) const {
  const auto same_shape = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
    return entry.size.m == size.m && entry.size.n == size.n;
  });
  if (same_shape != entries_.rend()) {
    const double known =
        is_batched_ ? std::max(same_shape->flops, telling_flops) : same_shape->flops;
    return same_shape->seconds * (is_batched_ ? std::max(flops / known, 1.0) : flops / known);
  }
  double best_rate = 0;
  for (const Entry& entry : entries_)
    if (entry.flops >= telling_flops) best_rate = std::max(best_rate, entry.flops / entry.seconds);
  return flops / (best_rate > 0 ? best_rate : usual_rate_);
}

}  // namespace qrtool
