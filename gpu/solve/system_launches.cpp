// SPDX-License-Identifier: Apache-2.0
// system_launches.cpp: which kernels run, in their order. Device half: systems.cl, measures.cl,
// system_lanes.cl, normal.cl, normal_lane.cl, normal_tile.cl, normal_group.cl, tall_systems.cl,
// normal_sums.cl, tall_normal.cl.
#include "gpu/solve/system_launches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "core/solve/backward_error.hpp"
#include "gpu/host/launcher.hpp"
#include "gpu/solve/measures.hpp"
#include "gpu/solve/normal.hpp"
#include "gpu/solve/normal_group.hpp"
#include "gpu/solve/normal_lane.hpp"
#include "gpu/solve/normal_sums.hpp"
#include "gpu/solve/normal_tile.hpp"
#include "gpu/solve/system_lanes.hpp"
#include "gpu/solve/tall_normal.hpp"
#include "gpu/solve/tall_systems.hpp"
#include "gpu/tuning.hpp"

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

constexpr std::array<std::string_view, 11> heavy_kernels{
    "solve_normal",         "solve_normal_tile", "solve_normal_group", "check_solutions",
    "solve_systems",        "measure_factors",   "solve_normal_sums",  "take_step",
    "measure_lane_factors", "sum_normal_slabs",  "sum_row_slabs"};

/// Gives the launcher of a program: one that enqueues, or one that takes down names.
using LauncherOf = std::function<Launcher(const ProgramSource&)>;

ProgramSource source_of(const SystemJob& job, const char* file, const Params& params) {
  const Problem problem{.type = job.type};
  return {file, defines_for(problem, params, ElementType::float64), "solving systems"};
}

ProgramSource group_source(const SystemJob& job) {
  return source_of(job, "gpu/solve/systems.cl", job.params);
}

ProgramSource lane_source(const SystemJob& job) {
  return source_of(job, "gpu/solve/system_lanes.cl", job.lane_params);
}

ProgramSource tall_source(const SystemJob& job) {
  return source_of(job, "gpu/solve/tall_systems.cl", job.tall_params);
}

/// x for every right side, from A, b and R.
void enqueue_solve(const LauncherOf& launcher, const SystemJob& job) {
  if (is_tall_system(job.shape.m)) {
    Launcher launch = launcher(tall_source(job));
    enqueue_tall_steps(job, 0, launch);
    return;
  }
  Launcher launch = launcher(group_source(job));
  const index_t sides = job.shape.count * static_cast<index_t>(job.shape.sides);
  launch("solve_systems", ceil_divide(sides, job.params.at("TEAMS")), system_group_size(job.params),
         job.a, job.b, job.r, job.x, job.shape);
}

/// x and R, from A and b.
void enqueue_normal(const LauncherOf& launcher, const SystemJob& job, NormalBody body) {
  if (is_tall_system(job.shape.m)) {
    Launcher launch_sums = launcher(source_of(job, "gpu/solve/normal_sums.cl", job.sums_params));
    enqueue_normal_sums(job, launch_sums);
    Launcher launch = launcher(source_of(job, "gpu/solve/tall_normal.cl", job.tall_normal_params));
    enqueue_tall_normal_solve(job, launch);
    if (job.type != ElementType::float64) return;
    Launcher launch_steps = launcher(tall_source(job));
    enqueue_tall_steps(job, 1, launch_steps);
    return;
  }
  if (body == NormalBody::lane) {
    Launcher launch = launcher(source_of(job, "gpu/solve/normal_lane.cl", job.normal_lane_params));
    enqueue_normal_lanes(job, launch);
  } else if (body == NormalBody::team) {
    Launcher launch = launcher(source_of(job, "gpu/solve/normal.cl", job.normal_params));
    enqueue_normal_solve(job, launch);
  } else if (body == NormalBody::warp) {
    Launcher launch = launcher(source_of(job, "gpu/solve/normal_tile.cl", job.normal_tile_params));
    enqueue_normal_tiles(job, launch);
  } else {
    Launcher launch =
        launcher(source_of(job, "gpu/solve/normal_group.cl", job.normal_group_params));
    enqueue_normal_groups(job, launch);
  }
}

/// The findings, the errors and the standard errors.
void enqueue_check(const LauncherOf& launcher, const SystemJob& job) {
  if (measures_by_lanes(job.params.at("COLUMNS"))) {
    Launcher launch_lanes = launcher(lane_source(job));
    enqueue_lane_measures(job, launch_lanes);
  } else {
    Launcher launch_teams = launcher(source_of(job, "gpu/solve/measures.cl", job.measure_params));
    enqueue_measures(job, launch_teams);
  }
  if (is_tall_system(job.shape.m)) {
    Launcher launch_tall = launcher(tall_source(job));
    enqueue_tall_check(job, launch_tall);
    return;
  }
  if (checks_by_lanes(job.shape.m, job.params.at("COLUMNS"))) {
    Launcher launch_lanes = launcher(lane_source(job));
    enqueue_lane_check(job, launch_lanes);
    return;
  }
  const index_t sides = job.shape.count * static_cast<index_t>(job.shape.sides);
  Launcher launch = launcher(group_source(job));
  launch("check_solutions", ceil_divide(sides, job.params.at("TEAMS")),
         system_group_size(job.params), job.a, job.b, job.r, job.x, job.findings, job.inverse_norms,
         job.errors, job.se, job.shape);
}

NormalBody body_of(const SystemSetup& setup, SystemRoute route) {
  switch (route) {
    case SystemRoute::normal_tiles:
      return NormalBody::warp;
    case SystemRoute::normal_groups:
      return NormalBody::group;
    default:
      return normal_body(setup.problem, setup.engine.info.limits);
  }
}

/// Builds the kernels of a route in parts; kernels that are built already cost nothing.
void prepare_systems(const SystemSetup& setup, const FactorJob& factor, const SystemJob& job,
                     SystemRoute route) {
  Engine& engine = setup.engine;
  if (!engine.session.programs.has_parts()) return;
  std::map<std::string_view, WantedKernels> of_files;
  const LauncherOf recorder = [&](const ProgramSource& source) {
    const WantedKernels none{source, {}, heavy_kernels};
    return Launcher(of_files.try_emplace(source.file, none).first->second.kernels);
  };
  const bool is_normal = route != SystemRoute::factors;
  if (is_normal) {
    enqueue_normal(recorder, job, body_of(setup, route));
  } else {
    enqueue_solve(recorder, job);
  }
  enqueue_check(recorder, job);
  std::vector<WantedKernels> wanted;
  for (const auto& [file, kernels] : of_files) wanted.push_back(kernels);
  if (!is_normal) engine.add_wanted(setup.variant, factor, wanted);
  engine.session.programs.prepare(wanted);
}

}  // namespace

SystemEvents enqueue_systems(const SystemSetup& setup, const FactorJob& factor,
                             const SystemBuffers& system, SystemShape shape, SystemRoute route) {
  Engine& engine = setup.engine;
  const bool is_normal = route != SystemRoute::factors;
  if (is_normal)
    shape.least_value =
        normal_least_value(setup.problem.type, shape.least_value, body_of(setup, route));
  const SystemJob job = system.job(factor, setup.params, shape);
  const LauncherOf launcher = [&](const ProgramSource& source) {
    return Launcher(engine.kernels, engine.compute, engine.session.programs, source);
  };
  prepare_systems(setup, factor, job, route);
  system.poison(engine.compute, shape.count);
  SystemEvents events;
  engine.compute.enqueueMarkerWithWaitList(nullptr, &events.begun);
  if (is_normal) {
    engine.compute.enqueueMarkerWithWaitList(nullptr, &events.factored);
    enqueue_normal(launcher, job, body_of(setup, route));
  } else {
    engine.factor(setup.variant, factor, events.factored);
    enqueue_solve(launcher, job);
  }
  engine.compute.enqueueMarkerWithWaitList(nullptr, &events.solved);
  enqueue_check(launcher, job);
  engine.compute.enqueueMarkerWithWaitList(nullptr, &events.checked);
  return events;
}

}  // namespace qrtool
