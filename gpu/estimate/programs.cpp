// SPDX-License-Identifier: Apache-2.0
// programs.cpp: of factors the programs that pipeline/engine.cpp builds, by name only; of systems
// those that a recording launcher finds.
#include "gpu/estimate/programs.hpp"

#include <span>

#include "core/solve/shapes.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/check/device_sums.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/shared/shared_matrix.hpp"
#include "gpu/solve/system_launches.hpp"

namespace qrtool {
namespace {

ProgramSource source_of(const GpuVariant& variant, const Problem& p, const DeviceInfo& device) {
  const Params params = variant.plan.tune(p, device.limits);
  return {variant.file, defines_for(p, params, variant.computes_in(p)), variant.plan.name};
}

std::vector<ProgramSource> variant_sources(const GpuVariant& variant, const Problem& p,
                                           const DeviceInfo& device) {
  std::vector<ProgramSource> sources{source_of(variant, p, device)};
  if (variant.inner.variant != nullptr) {
    const GpuVariant inner = variant.inner.variant(p);
    for (const ProgramSource& source : variant_sources(inner, variant.inner.problem(p), device))
      sources.push_back(source);
  }
  return sources;
}

void add_names(std::span<const ProgramSource> sources, const DeviceInfo& device,
               std::vector<std::string>& names) {
  for (const ProgramSource& source : sources)
    names.push_back(program_id(device, source.file, source.defines));
}

/// Systems whose R is that of `p`.
SolveProblem systems_of(const Problem& p, const SystemTraits& traits = {}) {
  return {.type = p.type,
          .m = traits.is_wide ? p.n : p.m,
          .n = traits.is_wide ? p.m : p.n,
          .rank = {},
          .has_weights = traits.shares_a,
          .weighs_each = traits.shares_a};
}

}  // namespace

std::vector<ProgramSource> factor_sources(const Variant& plan, const Problem& p,
                                          const DeviceInfo& device) {
  const GpuVariant& variant = gpu_variant(plan);
  std::vector<ProgramSource> sources = variant_sources(variant, p, device);
  if (p.check != Check::none) {
    const CheckProgram check =
        variant.checks_by_vectors ? vector_check_program(p) : check_program(p, device.limits);
    sources.push_back({check.file, check.defines, "the check"});
  }
  sources.push_back({sum_file, sum_defines(), "checksums"});
  return sources;
}

std::vector<std::string> factor_programs(const Variant& plan, const Problem& p,
                                         const DeviceInfo& device) {
  std::vector<std::string> names;
  add_names(factor_sources(plan, p, device), device, names);
  return names;
}

bool has_shared_systems(const Problem& p, index_t sides, const Limits& device) {
  return p.count == 1 && pays_as_shared(p.n, sides) &&
         shared_objection(systems_of(p), 0, device).empty();
}

std::vector<std::string> solve_programs(const Variant& plan, const Problem& p, index_t sides,
                                        const DeviceInfo& device, const SystemTraits& traits) {
  const SolveProblem systems = systems_of(p, traits);
  const Problem typed{.type = p.type};
  const auto name = [&](std::string_view file, const Params& of) {
    return program_id(device, file, defines_for(typed, of, ElementType::float64));
  };
  if (!traits.is_wide && has_shared_systems(p, sides, device.limits)) {
    const SharedParams shared(systems, SidesLayout::columns, false, device.limits);
    return {name("gpu/solve/shared/shared.cl", shared.solve),
            name("gpu/solve/shared/shared.cl", shared.check),
            program_id(device, sum_file, sum_defines())};
  }
  std::vector<std::string> names{program_id(device, sum_file, sum_defines())};
  for (const WantedKernels& wanted : wanted_by_systems(
           systems, sides, device.limits, SystemRoute::normal_equations, traits.shares_a))
    names.push_back(program_id(device, wanted.source.file, wanted.source.defines));
  if (!traits.is_wide && takes_normal_equations(systems, sides, device.limits)) return names;
  add_names(variant_sources(gpu_variant(plan), p, device), device, names);
  return names;
}

}  // namespace qrtool
