// SPDX-License-Identifier: Apache-2.0
// build_ahead.cpp: prepares kernels as a run does, in parts where the device takes them so, and
// stops there.
#include "gpu/estimate/build_ahead.hpp"

#include <vector>

#include "core/machine/driver_scope.hpp"
#include "gpu/estimate/programs.hpp"
#include "gpu/pipeline/buffers.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/pipeline/flights.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/system_launches.hpp"

namespace qrtool {
namespace {

/// Calls build(engine). Errors: DeviceError where the device fails.
template <class Build>
void with_driver(OpenclBackend& backend, Build build) {
  FactorEngine& engine = backend.engine();
  const DriverScope driver;
  try {
    build(engine);
  } catch (const DeviceFailure& failure) {
    throw_device_error(failure, engine.info, "to build kernels");
  }
}

}  // namespace

void build_factor_programs(OpenclBackend& backend, const Plan& plan) {
  with_driver(backend, [&](FactorEngine& engine) {
    ProgramCache& programs = engine.session.programs;
    const GpuVariant& variant = gpu_variant(*plan.variant);
    if (!programs.has_parts()) {
      for (const ProgramSource& source : factor_sources(*plan.variant, plan.problem, engine.info))
        programs.get(source.file, source.defines, source.user);
      return;
    }
    const MatrixBytes bytes = matrix_bytes(variant, plan.problem);
    const DeviceBuffers one = engine.pool.get(plan.problem, plan.params, bytes, 1, 0);
    engine.prepare(variant, one, plan.problem.check != Check::none);
    engine.pool.clear();
  });
}

void build_solve_programs(OpenclBackend& backend, const SolveProblem& systems) {
  with_driver(backend, [&](FactorEngine& engine) {
    ProgramCache& programs = engine.session.programs;
    const std::vector<WantedKernels> wanted =
        wanted_by_systems(systems, /*sides=*/1, engine.info.limits, SystemRoute::normal_equations,
                          /*shares_a=*/false);
    if (programs.has_parts()) return programs.prepare(wanted);
    for (const WantedKernels& each : wanted)
      programs.get(each.source.file, each.source.defines, each.source.user);
  });
}

}  // namespace qrtool
