// SPDX-License-Identifier: Apache-2.0
// no_opencl.cpp: takes the place of opencl.cpp in a build without the gpu layer.
#include <limits>

#include "app/run/opencl.hpp"
#include "core/error.hpp"

namespace qrtool {

std::optional<int> build_opencl_kernels(int, char**) { return {}; }

std::vector<DeviceInfo> opencl_devices() { return {}; }

std::vector<DeviceInfo> choose_opencl_devices(std::string_view) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

std::unique_ptr<Backend> make_opencl_backend(const DeviceInfo&, const Limits&) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

std::span<const Variant> list_opencl_variants() { return {}; }

std::string opencl_system_objection(const Backend&, const SolveProblem&) {
  return "this build has no OpenCL";
}

bool opencl_has_normal_equations(const Backend&, const SolveProblem&, index_t) { return false; }

template <class T>
std::unique_ptr<SystemDevice<T>> make_opencl_systems(Backend&, const SolveProblem&, const Plan&,
                                                     SystemRoute) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}
template std::unique_ptr<SystemDevice<float>> make_opencl_systems(Backend&, const SolveProblem&,
                                                                  const Plan&, SystemRoute);
template std::unique_ptr<SystemDevice<double>> make_opencl_systems(Backend&, const SolveProblem&,
                                                                   const Plan&, SystemRoute);

double opencl_seconds(const Problem&, const DeviceInfo&) {
  return std::numeric_limits<double>::infinity();
}

}  // namespace qrtool
