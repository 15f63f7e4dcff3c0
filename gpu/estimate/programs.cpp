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

SolveProblem systems_of(const Work& work) {
  const Problem& of_r = work.problem;
  return {.type = of_r.type,
          .m = work.is_wide ? of_r.n : of_r.m,
          .n = work.is_wide ? of_r.m : of_r.n,
          .rank = {},
          .has_weights = work.shares_a,
          .weighs_each = work.shares_a};
}

}  // namespace

std::vector<ProgramSource> factor_sources(const Variant& plan, const Problem& p,
                                          const DeviceInfo& device) {
  const GpuVariant& variant = gpu_variant(plan);
  std::vector<ProgramSource> sources = variant_sources(variant, p, device);
  if (p.check != Check::none) {
    const bool by_vectors = variant.checks_by_vectors && device.limits.has_float64;
    const CheckProgram check =
        by_vectors ? vector_check_program(p) : check_program(p, device.limits);
    sources.push_back({check.file, check.defines, "the check"});
  }
  sources.push_back({sum_file, sum_defines(), "checksums"});
  return sources;
}

bool has_shared_systems(const Work& work, const Limits& device) {
  return work.problem.count == 1 && !work.is_wide &&
         pays_as_shared(work.problem.n, work.right_sides) &&
         shared_objection(systems_of(Work(work.problem)), 0, device).empty();
}

std::vector<std::string> programs_of(const Variant& variant, const Work& work,
                                     const DeviceInfo& device) {
  const Problem& p = work.problem;
  const index_t sides = work.right_sides;
  std::vector<std::string> names;
  if (sides == 0) {
    add_names(factor_sources(variant, p, device), device, names);
    return names;
  }
  names.push_back(program_id(device, sum_file, sum_defines()));
  const SolveProblem systems = systems_of(work);
  if (has_shared_systems(work, device.limits)) {
    const SharedParams shared(systems, SidesLayout::columns, false, device.limits);
    for (const Params& params : {shared.solve, shared.check})
      names.push_back(program_id(device, "gpu/solve/shared/shared.cl",
                                 defines_for({.type = p.type}, params, ElementType::float64)));
    return names;
  }
  for (const WantedKernels& wanted : wanted_by_systems(
           systems, sides, device.limits, SystemRoute::normal_equations, work.shares_a))
    names.push_back(program_id(device, wanted.source.file, wanted.source.defines));
  if (work.is_wide || !takes_normal_equations(systems, sides, device.limits))
    add_names(variant_sources(gpu_variant(variant), p, device), device, names);
  return names;
}

}  // namespace qrtool
