// SPDX-License-Identifier: Apache-2.0
// solve_device.cpp: what a device solves.
#include "app/engine/solve_device.hpp"

#include <algorithm>

#include "app/engine/opencl.hpp"

namespace qrtool {

bool makes_own_systems(const SystemsShape& shape, const SolveProblem& problem) {
  return shape.sides.shares_a() && problem.weighs_each;
}

namespace {

index_t sides_of_system(const SystemsShape& shape, const SolveProblem& problem) {
  return makes_own_systems(shape, problem) ? 1 : shape.sides.p;
}

index_t systems_of(const SystemsShape& shape, const SolveProblem& problem) {
  return shape.sides.items() * shape.sides.p / sides_of_system(shape, problem);
}

}  // namespace

Problem factored_on_device(const SolveProblem& problem, index_t systems) {
  return {.count = systems,
          .m = std::max(problem.packed_rows(), problem.n),
          .n = problem.k(),
          .type = problem.type,
          .mode = Mode::r};
}

Work work_of_systems(const SolveProblem& problem, index_t systems, index_t sides) {
  Work work(factored_on_device(problem, systems), sides);
  work.is_wide = problem.packed_rows() < problem.n;
  return work;
}

bool is_shared(const SystemsShape& shape, const SolveProblem& problem, const SolvePlan& plan) {
  return shape.sides.shares_a() && plan.route == SolveRoute::shared && !problem.weighs_each;
}

std::string objection_to_devices(const SystemsShape& shape, const SolveProblem& problem,
                                 const SolvePlan& plan) {
  if (std::string why = work_of_systems(problem, 1, 1).objection_to_devices(); !why.empty())
    return why;
  if (problem.wants_covariance) return "covariances are asked for";
  if (problem.wants_state) return "the state is asked for";
  if (is_shared(shape, problem, plan)) return {};
  if (!makes_own_systems(shape, problem)) {
    if (shape.sides.shares_a()) return "one A serves few right sides";
    if ((shape.has_weights || plan.splits) && shape.sides.p != 1)
      return "rows have weights or may be missing, and an A has several right sides";
    if (plan.route == SolveRoute::shared) return "an A has more right sides than columns";
  }
  if (plan.factor.by_rows()) return "a matrix does not fit the memory";
  return system_device_objection(problem);
}

Work solve_work_of(const SystemsShape& shape, const SolveProblem& problem, const SolvePlan& plan) {
  const index_t systems = systems_of(shape, problem), sides = sides_of_system(shape, problem);
  const bool shares = is_shared(shape, problem, plan);
  Work work = work_of_systems(problem, shares ? 1 : systems, sides * (shares ? systems : 1));
  work.shares_a = makes_own_systems(shape, problem);
  return work;
}

std::string plan_on_device(const SystemsShape& shape, const SolveProblem& problem,
                           const SolvePlan& plan, const std::string& forced, SolveDevice& device) {
  Backend& backend = *device.backend;
  device.is_shared = is_shared(shape, problem, plan);
  const index_t side_by_side = shape.sides.as_rows ? 0 : shape.sides.p;
  std::string objection = device.is_shared ? opencl_shared_objection(backend, problem, side_by_side)
                                           : opencl_system_objection(backend, problem);
  if (!objection.empty()) return objection;
  device.takes_gaps = device.is_shared && opencl_takes_gaps(backend, problem);
  if (device.is_shared && !device.takes_gaps) return {};
  device.factor = make_plan(factored_on_device(problem, systems_of(shape, problem)),
                            backend.variants(), backend.limits(), forced);
  if (device.takes_gaps) device.route = SystemRoute::normal_equations;
  if (device.is_shared) return {};
  // A variant that was named is the one that runs.
  if (forced.empty() &&
      opencl_has_normal_equations(backend, problem, sides_of_system(shape, problem)))
    device.route = SystemRoute::normal_equations;
  return {};
}

}  // namespace qrtool
