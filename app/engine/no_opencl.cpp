// SPDX-License-Identifier: Apache-2.0
// no_opencl.cpp: takes the place of opencl.cpp in a build without the gpu layer.
#include <limits>

#include "app/engine/opencl.hpp"
#include "core/error.hpp"
#include "gpu/pipeline/stream_engine.hpp"
#include "gpu/solve/stream_systems.hpp"

namespace qrtool {

std::vector<DeviceInfo> list_devices() { return {}; }

std::vector<DeviceTimes> device_times() { return {}; }

CudaReach cuda_reach(const DeviceInfo&) { return {{}, "this build has no OpenCL"}; }

std::vector<std::string> cuda_devices_beside(std::span<const DeviceInfo>) { return {}; }

std::vector<DeviceInfo> choose_devices(std::span<const DeviceInfo>, std::string_view) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

std::unique_ptr<Backend> make_opencl_backend(const DeviceInfo&, const Limits&, bool) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

bool opencl_is_pageable(const Backend&) { return false; }

const CallerArrays* opencl_caller_arrays(Backend&) { return nullptr; }

std::unique_ptr<StreamEngine> make_opencl_stream_engine(Backend&, const StreamAllocator&) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

template <class T>
SystemResults solve_on_opencl_stream(StreamEngine&, void*, const SolveProblem&, const SystemArrays&,
                                     const std::function<SystemsPlan()>&) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}
template SystemResults solve_on_opencl_stream<float>(StreamEngine&, void*, const SolveProblem&,
                                                     const SystemArrays&,
                                                     const std::function<SystemsPlan()>&);
template SystemResults solve_on_opencl_stream<double>(StreamEngine&, void*, const SolveProblem&,
                                                      const SystemArrays&,
                                                      const std::function<SystemsPlan()>&);

std::span<const Variant> list_opencl_variants() { return {}; }

void build_opencl_factors(Backend&, const Plan&) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

void build_opencl_systems(Backend&, const SolveProblem&) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

std::string opencl_system_objection(const Backend&, const SolveProblem&) {
  return "this build has no OpenCL";
}

bool opencl_has_normal_equations(const Backend&, const SolveProblem&, index_t) { return false; }

bool opencl_takes_gaps(const Backend&, const SolveProblem&) { return false; }

template <class T>
std::unique_ptr<SystemDevice<T>> make_opencl_systems(Backend&, const SolveProblem&, const Plan&,
                                                     SystemRoute) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}
template std::unique_ptr<SystemDevice<float>> make_opencl_systems(Backend&, const SolveProblem&,
                                                                  const Plan&, SystemRoute);
template std::unique_ptr<SystemDevice<double>> make_opencl_systems(Backend&, const SolveProblem&,
                                                                   const Plan&, SystemRoute);

std::string opencl_shared_objection(const Backend&, const SolveProblem&, index_t) {
  return "this build has no OpenCL";
}

template <class T>
std::unique_ptr<SharedDevice<T>> make_opencl_shared(Backend&, const SolveProblem&,
                                                    MatrixView<const T>, const SharedFactors&,
                                                    SidesLayout) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}
template std::unique_ptr<SharedDevice<float>> make_opencl_shared(Backend&, const SolveProblem&,
                                                                 MatrixView<const float>,
                                                                 const SharedFactors&, SidesLayout);
template std::unique_ptr<SharedDevice<double>> make_opencl_shared(Backend&, const SolveProblem&,
                                                                  MatrixView<const double>,
                                                                  const SharedFactors&,
                                                                  SidesLayout);

DeviceWork device_work(const Work&, const DeviceInfo&, const Variant*) {
  return {.variant = {}, .programs = {}, .run_seconds = std::numeric_limits<double>::infinity()};
}

double copy_seconds(const Problem&) { return std::numeric_limits<double>::infinity(); }

std::string DeviceInfo::text() const { return name; }

}  // namespace qrtool
