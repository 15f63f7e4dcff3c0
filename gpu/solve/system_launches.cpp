// SPDX-License-Identifier: Apache-2.0
// system_launches.cpp: which bodies run, in their order.
#include "gpu/solve/system_launches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "core/solve/backward_error.hpp"
#include "gpu/host/launcher.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/from_r/wide.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/normal.hpp"
#include "gpu/solve/normal/pairs.hpp"
#include "gpu/solve/parts/tuning.hpp"
#include "gpu/solve/system_layout.hpp"

namespace qrtool {

SystemShape system_shape(const SolveProblem& p, index_t count, index_t sides,
                         const VectorPlaces& of_b, const VectorPlaces& of_x) {
  const auto side = [](const VectorPlaces& places) {
    return places.group == 1 ? places.group_stride : places.stride;
  };
  const double u = p.type == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  return {.b_system = sides * p.m,
          .b_side = side(of_b),
          .b_step = of_b.step,
          .x_system = sides * p.n,
          .x_side = side(of_x),
          .x_step = of_x.step,
          .enough = tuning::solve_enough * std::sqrt(u),
          .least_value = tuning::solve_rank_margin * p.rank.tolerance,
          .clear = clear_of_bar * solution_bar(p.type, p.m, p.n),
          .count = static_cast<int>(count),
          .m = static_cast<int>(p.m),
          .sides = static_cast<int>(sides),
          .wants_se = p.wants_se};
}

namespace {

constexpr std::array<std::string_view, 12> heavy_kernels{
    "solve_normal",  "solve_normal_tile",    "solve_normal_group", "check_solutions",
    "solve_systems", "solve_wide",           "measure_factors",    "solve_normal_sums",
    "take_step",     "measure_lane_factors", "sum_normal_slabs",   "sum_row_slabs"};

/// Gives the launcher of a program: one that enqueues, or one that takes down names.
using LauncherOf = std::function<Launcher(const ProgramSource&)>;

/// What runs for some systems, in this order: x (and R, by normal equations), and its check.
struct SystemSteps {
  std::vector<SystemStep> solve, check;

  void add_check(const std::vector<SystemStep>& steps) {
    check.insert(check.end(), steps.begin(), steps.end());
  }
};

SystemSteps steps_by(const SystemBody& solving, const SolveProblem& p, const Limits& limits) {
  SystemSteps steps{solving.steps(p, limits),
                    chosen_body(measuring_bodies(), p, limits)->steps(p, limits)};
  steps.add_check(chosen_body(checking_bodies(), p, limits)->steps(p, limits));
  return steps;
}

SystemSteps steps_by_pairs(const SolveProblem& p, const Limits& limits) {
  SystemSteps steps{pair_solutions(p, limits),
                    chosen_body(measuring_bodies(), p, limits)->steps(p, limits)};
  steps.add_check(pair_check(p, limits));
  return steps;
}

/// The steps for wide systems. `measures` runs twice: after R of D^-1 A', and after R of A'
/// (wide.cl).
struct WideSteps {
  WideSteps(const SolveProblem& p, const Limits& limits)
      : turn{wide_turn(p, limits)},
        measures(chosen_body(measuring_bodies(), turned(p), limits)->steps(turned(p), limits)),
        solve(wide_solution(p, limits)),
        check{wide_check(p, limits)} {}

  SystemSteps all() const {
    SystemSteps steps{turn, measures};
    steps.add_check(solve);
    steps.add_check(check);
    return steps;
  }

  std::vector<SystemStep> turn, measures, solve, check;
};

void enqueue(const LauncherOf& launcher, const SystemJob& job,
             const std::vector<SystemStep>& steps) {
  for (const SystemStep& step : steps) {
    const Problem problem{.type = step.in_float64 ? ElementType::float64 : job.type};
    Launcher launch = launcher(
        {step.file, defines_for(problem, step.params, ElementType::float64), "solving systems"});
    step.enqueue(job, step.params, launch);
  }
}

std::vector<WantedKernels> wanted_by(const SystemSteps& steps, const SystemJob& job) {
  std::map<std::string_view, WantedKernels> of_files;
  const LauncherOf recorder = [&](const ProgramSource& source) {
    const WantedKernels none{source, {}, heavy_kernels};
    return Launcher(of_files.try_emplace(source.file, none).first->second.kernels);
  };
  enqueue(recorder, job, steps.solve);
  enqueue(recorder, job, steps.check);
  std::vector<WantedKernels> wanted;
  for (const auto& [file, kernels] : of_files) wanted.push_back(kernels);
  return wanted;
}

/// By normal equations, or by R.
const SystemBody& solving_body(const SolveProblem& p, index_t sides, const Limits& limits,
                               SystemRoute route, std::string_view forced) {
  const SystemBody* const normal = route == SystemRoute::normal_equations
                                       ? chosen_normal_body(p, sides, limits, forced)
                                       : nullptr;
  return normal != nullptr ? *normal : *chosen_body(solving_bodies(), p, limits);
}

LauncherOf launchers_of(FactorEngine& engine) {
  return [&engine](const ProgramSource& source) { return engine.launcher(source); };
}

/// Builds what is missing, and sets the results to NaN.
SystemEvents begin(const SystemSetup& setup, const PlacedSystems& placed, const SystemJob& job,
                   const SystemSteps& steps, bool has_own_r) {
  FactorEngine& engine = setup.engine;
  if (engine.session.programs.has_parts() && !setup.is_prepared) {
    // Kernels that are built already cost nothing.
    std::vector<WantedKernels> wanted = wanted_by(steps, job);
    if (!has_own_r) engine.add_wanted(setup.variant, placed.factor.job, wanted);
    engine.session.programs.prepare(wanted);
  }
  placed.system.poison(*engine.compute, job.shape.count);
  SystemEvents events;
  events.begun = engine.compute->mark();
  return events;
}

void finish(FactorEngine& engine, const SystemJob& job, const std::vector<SystemStep>& solve,
            const std::vector<SystemStep>& check, SystemEvents& events) {
  enqueue(launchers_of(engine), job, solve);
  events.solved = engine.compute->mark();
  enqueue(launchers_of(engine), job, check);
  events.checked = engine.compute->mark();
}

/// Enqueues the steps, after R of setup.variant where they do not make it.
SystemEvents enqueue(const SystemSetup& setup, const PlacedSystems& placed, const SystemJob& job,
                     const SystemSteps& steps, bool has_own_r) {
  FactorEngine& engine = setup.engine;
  SystemEvents events = begin(setup, placed, job, steps, has_own_r);
  if (!has_own_r) engine.factor(setup.variant, placed.factor.job);
  events.factored = engine.compute->mark();
  finish(engine, job, steps.solve, steps.check, events);
  return events;
}

/// Right sides of one A with weights or gaps of their own. `factor` has no A.
SystemEvents enqueue_pairs(const SystemSetup& setup, const PlacedSystems& placed, SystemShape shape,
                           SystemPool& pool) {
  const Limits& limits = setup.engine.info.limits;
  shape.least_value =
      std::max(shape.least_value, normal_least_value_of_blocks(setup.solved, limits));
  SystemJob job = placed.system.job(placed.factor.job, shape);
  job.a = placed.input.ready.a;
  job.pairs = pair_buffers(setup.solved, placed.shape.systems, pool);
  job.pairs.weights = placed.input.ready.w;
  job.pairs.shares_weights = placed.shape.shares_weights;
  job.pairs.left_out = placed.system.left_out;
  return enqueue(setup, placed, job, steps_by_pairs(setup.solved, limits), true);
}

/// The factors are those of A', and `shape` is that of the systems themselves.
SystemEvents enqueue_wide(const SystemSetup& setup, const PlacedSystems& placed,
                          const SystemShape& shape) {
  FactorEngine& engine = setup.engine;
  const WideSteps steps(turned(setup.solved), engine.info.limits);
  SystemJob job = placed.system.job(placed.factor.job, shape);
  job.wide = placed.wide;
  job.wide.a = placed.input.ready.a;
  SystemEvents events = begin(setup, placed, job, steps.all(), /*has_own_r=*/false);
  enqueue(launchers_of(engine), job, steps.turn);
  FactorJob of_scaled = placed.factor.job;
  of_scaled.a = placed.wide.scaled;
  engine.factor(setup.variant, of_scaled);
  enqueue(launchers_of(engine), job, steps.measures);
  engine.factor(setup.variant, placed.factor.job);
  events.factored = engine.compute->mark();
  job.findings = placed.wide.of_r;
  enqueue(launchers_of(engine), job, steps.measures);
  job.findings = placed.system.findings;
  finish(engine, job, steps.solve, steps.check, events);
  return events;
}

}  // namespace

std::vector<WantedKernels> wanted_by_systems(const SolveProblem& p, index_t sides,
                                             const Limits& limits, SystemRoute route,
                                             bool shares_a) {
  const SystemShape shape =
      system_shape(p, 1, sides, VectorPlaces::rows(p.m), VectorPlaces::rows(p.n));
  // Without buffers.
  SystemJob job{
      .type = p.type, .n = p.n, .shape = shape, .factor_groups = 1, .pairs = without_buffers(p)};
  job.wide.length = static_cast<int>(p.n);
  if (is_wide(p)) return wanted_by(WideSteps(p, limits).all(), job);
  if (shares_a && route == SystemRoute::normal_equations && takes_pairs(p, limits))
    return wanted_by(steps_by_pairs(p, limits), job);
  return wanted_by(steps_by(solving_body(p, sides, limits, route, {}), p, limits), job);
}

SystemSetup::SystemSetup(FactorEngine& used, const SolveProblem& problem, const Plan& of_r,
                         std::string_view body)
    : engine(used),
      given(problem),
      is_wide(qrtool::is_wide(problem)),
      posed(with_ridge_rows(problem)),
      solved(is_wide ? turned(posed) : posed),
      plan(of_r),
      variant(gpu_variant(*of_r.variant)),
      factor_bytes(matrix_bytes(variant, of_r.problem)),
      forced_body(body) {}

MatrixBytes SystemSetup::bytes(const InputShape& shape) const {
  MatrixBytes bytes = shape.by_pairs ? pair_bytes(factor_bytes, solved) : factor_bytes;
  const auto own = system_layout(posed, shape.sides, engine.info.limits).bytes;
  bytes.io.insert(bytes.io.end(), own.begin(), own.end());
  if (given.ridge > 0) {
    // A, b and the weights as they are uploaded.
    const index_t entries = given.m * ((shape.by_pairs ? 0 : given.n) + shape.sides + 1);
    bytes.io.push_back(static_cast<std::size_t>(entries) * size_of(given.type));
  }
  if (is_wide) bytes.io.push_back(wide_bytes(given, shape.sides));
  return bytes;
}

PlacedSystems place_systems(const SystemSetup& setup, const InputShape& shape, int set,
                            BufferPool& factors, SystemPool& pool, const GivenArrays& given) {
  MatrixBytes bytes = shape.by_pairs ? bytes_of_r(setup.factor_bytes) : setup.factor_bytes;
  SystemLayout layout = system_layout(setup.posed, shape.sides, setup.engine.info.limits);
  const bool has_a = given.a && !setup.makes_a(), has_b = given.b && !setup.makes_b();
  if (has_a) bytes.io[0] = 0;
  if (has_b) layout.bytes[SystemLayout::b] = 0;
  if (given.x) layout.bytes[SystemLayout::x] = 0;
  if (given.se) layout.bytes[SystemLayout::se] = 0;
  PlacedSystems placed{
      shape,
      factors.get(setup.plan.problem, setup.plan.params, bytes, shape.systems, set),
      pool.get(layout, shape.systems, set),
      {},
      {}};
  if (has_a) placed.factor.job.a = given.a;
  if (has_b) placed.system.b = given.b;
  if (given.x) placed.system.x = given.x;
  if (given.se) placed.system.se = given.se;
  placed.input = input_buffers(setup.given, shape, placed.factor.job, placed.system,
                               {given.a, given.b, {}}, set, pool);
  if (setup.is_wide) placed.wide = wide_buffers(setup.given, shape.systems, shape.sides, set, pool);
  return placed;
}

SystemEvents enqueue_systems(const SystemSetup& setup, PlacedSystems& placed, SystemShape shape,
                             SystemRoute route, SystemPool& pool) {
  if (placed.shape.by_pairs) return enqueue_pairs(setup, placed, shape, pool);
  if (setup.is_wide) return enqueue_wide(setup, placed, shape);
  const Limits& limits = setup.engine.info.limits;
  const SystemBody& body =
      solving_body(setup.solved, shape.sides, limits, route, setup.forced_body);
  const bool has_own_r = body.least_value != nullptr;
  if (has_own_r)
    shape.least_value = std::max(shape.least_value, body.least_value(setup.solved, limits));
  return enqueue(setup, placed, placed.system.job(placed.factor.job, shape),
                 steps_by(body, setup.solved, limits), has_own_r);
}

}  // namespace qrtool
