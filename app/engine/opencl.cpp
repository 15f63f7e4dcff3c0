// SPDX-License-Identifier: Apache-2.0
// opencl.cpp: the gpu layer as app sees it.
#include "app/engine/opencl.hpp"

#include "gpu/estimate/build_ahead.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/pipeline/stream_engine.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/from_r/system_params.hpp"
#include "gpu/solve/from_r/wide.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/pairs.hpp"
#include "gpu/solve/shared/masked.hpp"
#include "gpu/solve/shared/shared_matrix.hpp"
#include "gpu/solve/shared/shared_systems.hpp"
#include "gpu/solve/stream_systems.hpp"
#include "gpu/solve/systems.hpp"

namespace qrtool {

std::unique_ptr<Backend> make_opencl_backend(const DeviceInfo& device, const Limits& host,
                                             bool portable) {
  OpenclOptions options;
  options.host = host;
  options.portable = portable;
  return std::make_unique<OpenclBackend>(device, options);
}

bool opencl_is_pageable(const Backend& backend) {
  const auto* device = dynamic_cast<const OpenclBackend*>(&backend);
  return device != nullptr && device->is_pageable();
}

const CallerArrays* opencl_caller_arrays(Backend& backend) {
  auto* const device = dynamic_cast<OpenclBackend*>(&backend);
  return device == nullptr ? nullptr : caller_arrays_of(*device);
}

std::unique_ptr<StreamEngine> make_opencl_stream_engine(Backend& backend,
                                                        const StreamAllocator& allocator) {
  return make_stream_engine(dynamic_cast<OpenclBackend&>(backend), allocator);
}

template <class T>
SystemResults solve_on_opencl_stream(StreamEngine& engine, void* stream,
                                     const SolveProblem& problem, const SystemArrays& arrays,
                                     const std::function<SystemsPlan()>& make_plan) {
  return solve_on_stream<T>(engine, stream, problem, arrays, make_plan);
}
template SystemResults solve_on_opencl_stream<float>(StreamEngine&, void*, const SolveProblem&,
                                                     const SystemArrays&,
                                                     const std::function<SystemsPlan()>&);
template SystemResults solve_on_opencl_stream<double>(StreamEngine&, void*, const SolveProblem&,
                                                      const SystemArrays&,
                                                      const std::function<SystemsPlan()>&);

std::span<const Variant> list_opencl_variants() { return opencl_variants(); }

void build_opencl_factors(Backend& backend, const Plan& plan) {
  build_factor_programs(dynamic_cast<OpenclBackend&>(backend), plan);
}

void build_opencl_systems(Backend& backend, const SolveProblem& problem) {
  build_solve_programs(dynamic_cast<OpenclBackend&>(backend), problem);
}

std::string opencl_system_objection(const Backend& backend, const SolveProblem& problem) {
  return system_objection(problem, backend.limits());
}

bool opencl_has_normal_equations(const Backend& backend, const SolveProblem& problem,
                                 index_t sides) {
  return !is_wide(problem) &&
         takes_normal_equations(with_ridge_rows(problem), sides, backend.limits());
}

bool opencl_takes_gaps(const Backend& backend, const SolveProblem& problem) {
  const Limits limits = backend.limits();
  return problem.skips_missing && !masks_on_device(problem) && !is_wide(problem) &&
         takes_pairs(with_ridge_rows(problem), limits) && system_objection(problem, limits).empty();
}

template <class T>
std::unique_ptr<SystemDevice<T>> make_opencl_systems(Backend& backend, const SolveProblem& problem,
                                                     const Plan& factor, SystemRoute route) {
  return make_system_device<T>(dynamic_cast<OpenclBackend&>(backend), problem, factor, route);
}
template std::unique_ptr<SystemDevice<float>> make_opencl_systems(Backend&, const SolveProblem&,
                                                                  const Plan&, SystemRoute);
template std::unique_ptr<SystemDevice<double>> make_opencl_systems(Backend&, const SolveProblem&,
                                                                   const Plan&, SystemRoute);

std::string opencl_shared_objection(const Backend& backend, const SolveProblem& problem,
                                    index_t side_by_side) {
  return shared_objection(problem, side_by_side, backend.limits());
}

template <class T>
std::unique_ptr<SharedDevice<T>> make_opencl_shared(Backend& backend, const SolveProblem& problem,
                                                    MatrixView<const T> a,
                                                    const SharedFactors& factors,
                                                    SidesLayout layout) {
  return make_shared_device<T>(dynamic_cast<OpenclBackend&>(backend), problem, a, factors, layout);
}
template std::unique_ptr<SharedDevice<float>> make_opencl_shared(Backend&, const SolveProblem&,
                                                                 MatrixView<const float>,
                                                                 const SharedFactors&, SidesLayout);
template std::unique_ptr<SharedDevice<double>> make_opencl_shared(Backend&, const SolveProblem&,
                                                                  MatrixView<const double>,
                                                                  const SharedFactors&,
                                                                  SidesLayout);

}  // namespace qrtool
