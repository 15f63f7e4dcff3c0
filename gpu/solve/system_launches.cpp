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
#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/from_r/wide.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/normal.hpp"
#include "gpu/solve/normal/pairs.hpp"
#include "gpu/solve/parts/tuning.hpp"

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
        solve{wide_solution(p, limits)},
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

/// Enqueues the steps, after R of setup.variant where they do not make it.
SystemEvents enqueue(const SystemSetup& setup, const FactorJob& factor, const SystemJob& job,
                     const SystemBuffers& system, const SystemSteps& steps, bool has_own_r) {
  FactorEngine& engine = setup.engine;
  const LauncherOf launcher = [&](const ProgramSource& source) { return engine.launcher(source); };
  if (engine.session.programs.has_parts()) {
    // Kernels that are built already cost nothing.
    std::vector<WantedKernels> wanted = wanted_by(steps, job);
    if (!has_own_r) engine.add_wanted(setup.variant, factor, wanted);
    engine.session.programs.prepare(wanted);
  }
  system.poison(*engine.compute, job.shape.count);
  SystemEvents events;
  events.begun = engine.compute->mark();
  if (has_own_r) {
    events.factored = engine.compute->mark();
  } else {
    engine.factor(setup.variant, factor, events.factored);
  }
  enqueue(launcher, job, steps.solve);
  events.solved = engine.compute->mark();
  enqueue(launcher, job, steps.check);
  events.checked = engine.compute->mark();
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

SystemEvents enqueue_systems(const SystemSetup& setup, const FactorJob& factor,
                             const SystemBuffers& system, SystemShape shape, SystemRoute route) {
  const Limits& limits = setup.engine.info.limits;
  const SystemBody& body =
      solving_body(setup.problem, shape.sides, limits, route, setup.forced_body);
  const bool has_own_r = body.least_value != nullptr;
  if (has_own_r) {
    shape.least_value = std::max(shape.least_value, body.least_value(setup.problem, limits));
  }
  return enqueue(setup, factor, system.job(factor, shape), system,
                 steps_by(body, setup.problem, limits), has_own_r);
}

SystemEvents enqueue_pairs(const SystemSetup& setup, const FactorJob& factor, const Buffer& a,
                           const PairBuffers& pairs, const SystemBuffers& system,
                           SystemShape shape) {
  const Limits& limits = setup.engine.info.limits;
  shape.least_value =
      std::max(shape.least_value, normal_least_value_of_blocks(setup.problem, limits));
  SystemJob job = system.job(factor, shape);
  job.a = a;
  job.pairs = pairs;
  return enqueue(setup, factor, job, system, steps_by_pairs(setup.problem, limits), true);
}

SystemEvents enqueue_wide(const SystemSetup& setup, const FactorJob& factor,
                          const WideBuffers& wide, const SystemBuffers& system,
                          const SystemShape& shape) {
  FactorEngine& engine = setup.engine;
  const WideSteps steps(turned(setup.problem), engine.info.limits);
  const LauncherOf launcher = [&](const ProgramSource& source) { return engine.launcher(source); };
  SystemJob job = system.job(factor, shape);
  job.wide = wide;
  if (engine.session.programs.has_parts()) {
    std::vector<WantedKernels> wanted = wanted_by(steps.all(), job);
    engine.add_wanted(setup.variant, factor, wanted);
    engine.session.programs.prepare(wanted);
  }
  system.poison(*engine.compute, shape.count);
  SystemEvents events;
  events.begun = engine.compute->mark();
  enqueue(launcher, job, steps.turn);
  FactorJob of_scaled = factor;
  of_scaled.a = wide.scaled;
  engine.factor(setup.variant, of_scaled, events.factored);
  enqueue(launcher, job, steps.measures);
  engine.factor(setup.variant, factor, events.factored);
  job.findings = wide.of_r;
  enqueue(launcher, job, steps.measures);
  job.findings = system.findings;
  enqueue(launcher, job, steps.solve);
  events.solved = engine.compute->mark();
  enqueue(launcher, job, steps.check);
  events.checked = engine.compute->mark();
  return events;
}

}  // namespace qrtool
