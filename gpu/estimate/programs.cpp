// SPDX-License-Identifier: Apache-2.0
// programs.cpp: of factors the programs that factor/engine.cpp builds, by name only; of systems
// those that a recording launcher finds.
#include "gpu/estimate/programs.hpp"

#include "core/solve/shapes.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/check/device_sums.hpp"
#include "gpu/host/program_cache.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/normal.hpp"
#include "gpu/solve/shared_matrix.hpp"
#include "gpu/solve/system_launches.hpp"

namespace qrtool {
namespace {

std::string name_of_program(const GpuVariant& variant, const Problem& p, const DeviceInfo& device) {
  const Params params = variant.plan.tune(p, device.limits);
  return program_id(device, variant.file, defines_for(p, params, variant.computes_in(p)));
}

std::vector<std::string> variant_programs(const GpuVariant& variant, const Problem& p,
                                          const DeviceInfo& device) {
  std::vector<std::string> names{name_of_program(variant, p, device)};
  if (variant.leading.variant != nullptr)
    names.push_back(name_of_program(variant.leading.variant(p), leading_problem(p), device));
  return names;
}

/// Plain systems whose R is that of `p`.
SolveProblem systems_of(const Problem& p) {
  return {.type = p.type, .m = p.m, .n = p.n, .rank = {}};
}

}  // namespace

std::vector<std::string> factor_programs(const Variant& plan, const Problem& p,
                                         const DeviceInfo& device) {
  const GpuVariant& variant = gpu_variant(plan);
  std::vector<std::string> names = variant_programs(variant, p, device);
  if (p.check != Check::none) {
    const CheckProgram check =
        variant.checks_by_vectors ? vector_check_program(p) : check_program(p, device.limits);
    names.push_back(program_id(device, check.file, check.defines));
  }
  names.push_back(program_id(device, sum_file, sum_defines()));
  return names;
}

bool has_shared_systems(const Problem& p, index_t sides, const Limits& device) {
  return p.count == 1 && pays_as_shared(p.n, sides) &&
         shared_objection(systems_of(p), 0, device).empty();
}

std::vector<std::string> solve_programs(const Variant& plan, const Problem& p, index_t sides,
                                        const DeviceInfo& device) {
  const SolveProblem systems = systems_of(p);
  const Problem typed{.type = p.type};
  const auto name = [&](std::string_view file, const Params& of) {
    return program_id(device, file, defines_for(typed, of, ElementType::float64));
  };
  if (has_shared_systems(p, sides, device.limits)) {
    const SharedParams shared(systems, SidesLayout::columns, false, device.limits);
    return {name("gpu/solve/shared.cl", shared.solve), name("gpu/solve/shared.cl", shared.check),
            program_id(device, sum_file, sum_defines())};
  }
  std::vector<std::string> names{program_id(device, sum_file, sum_defines())};
  for (const WantedKernels& wanted :
       wanted_by_systems(systems, sides, device.limits, SystemRoute::normal_equations))
    names.push_back(program_id(device, wanted.source.file, wanted.source.defines));
  if (takes_normal_equations(systems, sides, device.limits)) return names;
  for (const std::string& of_r : variant_programs(gpu_variant(plan), p, device))
    names.push_back(of_r);
  return names;
}

}  // namespace qrtool
