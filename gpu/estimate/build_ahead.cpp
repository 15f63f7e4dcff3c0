// SPDX-License-Identifier: Apache-2.0
// build_ahead.cpp: prepares kernels as a run does, in parts where the device takes them so, and
// stops there.
#include "gpu/estimate/build_ahead.hpp"

#include <vector>

#include "gpu/estimate/programs.hpp"
#include "gpu/pipeline/buffers.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/system_launches.hpp"

namespace qrtool {

void build_factor_programs(OpenclBackend& backend, const Plan& plan) {
  FactorEngine& engine = backend.engine();
  engine.guarded("to build kernels", "", [&] {
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
    engine.prepare_refused(variant, one.job, /*builds=*/true);
    engine.pool.clear();
  });
}

void build_solve_programs(OpenclBackend& backend, const SolveProblem& systems) {
  FactorEngine& engine = backend.engine();
  engine.guarded("to build kernels", "", [&] {
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
