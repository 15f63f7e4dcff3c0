// SPDX-License-Identifier: Apache-2.0
// choose_solve_device.cpp: the choice between the CPU and a device for `solve`.
#include "app/solve/choose_solve_device.hpp"

#include <fmt/format.h>

#include "app/process/console.hpp"
#include "app/run/backends/make_backend.hpp"
#include "core/error.hpp"

namespace qrtool {
namespace {

/// Why the systems of a run stay on the CPU, whatever the device; empty where they need not.
std::string objection_to(const SolveOptions& o, const SystemsShape& shape,
                         const SolveProblem& problem, const SolvePlan& plan) {
  std::string objection = objection_to_devices(shape, problem, plan);
  if (!objection.empty() || !is_shared(shape, problem, plan) || o.backend.variant.empty())
    return objection;
  return "the CPU factors an A that serves all right sides";
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
  const SystemsShape shape = inputs.shape();
  const std::string objection = objection_to(o, shape, problem, plan);
  if (!objection.empty() && !o.backend.asks_for_device()) {
    say_why_not(o, objection);
    return std::nullopt;
  }
  const Work work = solve_work_of(shape, problem, plan);
  SolveDevice device{.backend = choose_backend(o.backend, work, limits, o.verbose, before).backend};
  if (device.backend->name() != "opencl") return std::nullopt;
  const std::string of_device =
      objection.empty() ? plan_on_device(shape, problem, plan, o.backend.variant, device)
                        : objection;
  if (of_device.empty()) return device;
  say_why_not(o, of_device);
  return std::nullopt;
}

}  // namespace qrtool
