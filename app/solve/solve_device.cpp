// SPDX-License-Identifier: Apache-2.0
// solve_device.cpp: the choice between the CPU and a device for `solve`.
#include "app/solve/solve_device.hpp"

#include <fmt/format.h>

#include "app/process/console.hpp"
#include "app/run/make_backend.hpp"
#include "app/run/opencl.hpp"
#include "core/error.hpp"
#include "core/solve/system_device.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Whether one A serves all right sides, and there are so many that products with its Q pay.
bool is_shared(const SolveInputs& inputs, const SolvePlan& plan) {
  return inputs.sides.shares_a() && plan.route == SolveRoute::shared;
}

/// Why the systems of a run stay on the CPU, whatever the device; empty where they need not.
std::string objection_to(const SolveOptions& o, const SolveInputs& inputs,
                         const SolveProblem& problem, const SolvePlan& plan) {
  if (is_complex(problem.type)) return "A is complex";
  if (problem.wants_covariance) return "covariances are asked for";
  if (is_shared(inputs, plan) && problem.weighs_each)
    return "each right side has weights of its own";
  if (is_shared(inputs, plan))
    return o.backend.variant.empty() ? "" : "the CPU factors an A that serves all right sides";
  if (inputs.sides.shares_a()) return "one A serves few right sides";
  if ((inputs.w || plan.splits) && inputs.sides.p != 1)
    return "rows have weights or may be missing, and an A has several right sides";
  if (plan.route == SolveRoute::shared) return "an A has more right sides than columns";
  if (plan.factor.by_rows()) return "a matrix does not fit the memory";
  return system_device_objection(problem);
}

void say_why_not(const SolveOptions& o, const std::string& reason) {
  if (o.backend.asks_for_device() ? !o.quiet : o.verbose)
    print_message(fmt::format("note: solved on the CPU: {}", reason));
}

}  // namespace

std::optional<SolveDevice> choose_solve_device(const SolveOptions& o, const SolveInputs& inputs,
                                               const SolveProblem& problem, const SolvePlan& plan,
                                               const Limits& limits,
                                               const std::shared_ptr<Backend>& before) {
  if (o.backend.device == "all")
    throw UsageError("--device all: solve uses one device", "name one; see qrtool devices");
  const std::string objection = objection_to(o, inputs, problem, plan);
  if (!objection.empty() && !o.backend.asks_for_device()) {
    say_why_not(o, objection);
    return std::nullopt;
  }
  const Problem factored{.count = inputs.sides.items(),
                         .m = problem.m,
                         .n = problem.n,
                         .type = problem.type,
                         .mode = Mode::r};
  const bool shares = is_shared(inputs, plan);
  Problem estimated = factored;
  if (shares) estimated.count = 1;
  const index_t sides = inputs.sides.p * (shares ? factored.count : 1);
  SolveDevice device{
      .backend = choose_backend(o.backend, {estimated, sides}, limits, o.verbose, before).backend,
      .is_shared = shares};
  if (device.backend->name() != "opencl") return std::nullopt;
  if (!objection.empty()) {
    say_why_not(o, objection);
    return std::nullopt;
  }
  const index_t side_by_side = inputs.sides.as_rows ? 0 : inputs.sides.p;
  const std::string of_device =
      device.is_shared ? opencl_shared_objection(*device.backend, problem, side_by_side)
                       : opencl_system_objection(*device.backend, problem);
  if (!of_device.empty()) {
    say_why_not(o, of_device);
    return std::nullopt;
  }
  if (device.is_shared) return device;
  device.factor =
      make_plan(factored, device.backend->variants(), device.backend->limits(), o.backend.variant);
  // A variant that was named is the one that runs.
  if (o.backend.variant.empty() &&
      opencl_has_normal_equations(*device.backend, problem, inputs.sides.p))
    device.route = SystemRoute::normal_equations;
  return device;
}

}  // namespace qrtool
