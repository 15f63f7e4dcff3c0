// SPDX-License-Identifier: Apache-2.0
// launch_times.cpp: a library that says, when a program ends, how long each of its kernels took by
// the clock of the device. It stands in front of the OpenCL library:
//
//   LD_PRELOAD=build/release/tests/libqrtool_launch_times.so build/release/app/qrtool bench ..
//
// Launches of one kernel with as many work-items are one line. The queues must have profiling on,
// as the engine's queues do. The times leave out what a launch costs beside its kernel.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/host/opencl.hpp"

namespace {

struct Launch {
  std::string kernel;
  std::size_t items;
  cl_event event;
};

std::mutex access;
std::vector<Launch>& launches() {
  static auto* const all = new std::vector<Launch>;  // outlives everything else
  return *all;
}

/// Microseconds; negative where the device did not measure them.
double time_of(cl_event event) {
  cl_ulong start = 0, end = 0;
  const bool is_known = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start,
                                                &start, nullptr) == CL_SUCCESS &&
                        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end,
                                                nullptr) == CL_SUCCESS;
  return is_known ? static_cast<double>(end - start) * 1e-3 : -1;
}

void print_times() {
  const std::lock_guard lock(access);
  std::vector<std::pair<std::string, std::size_t>> order;
  std::map<std::pair<std::string, std::size_t>, std::vector<double>> times;
  for (const Launch& launch : launches()) {
    const std::pair key{launch.kernel, launch.items};
    const double time = time_of(launch.event);
    if (time < 0) continue;
    if (!times.contains(key)) order.push_back(key);
    times[key].push_back(time);
  }
  for (const auto& key : order) {
    std::vector<double>& all = times[key];
    std::ranges::sort(all);
    std::fprintf(stderr, "%-28s %10zu work-items x %5zu: median %10.2f us, least %10.2f us\n",
                 key.first.c_str(), key.second, all.size(), all[all.size() / 2], all.front());
  }
}

std::string name_of(cl_kernel kernel) {
  std::size_t bytes = 0;
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &bytes);
  std::string name(bytes, '\0');
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, bytes, name.data(), nullptr);
  name.resize(name.find('\0'));
  return name;
}

using Enqueue = decltype(&clEnqueueNDRangeKernel);

/// That of the OpenCL library.
Enqueue true_enqueue() {
  static const auto enqueue = [] {
    std::atexit(print_times);
    return reinterpret_cast<Enqueue>(dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel"));
  }();
  return enqueue;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) cl_int clEnqueueNDRangeKernel(
    cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
    const std::size_t* items, const std::size_t* group, cl_uint waits, const cl_event* wait_for,
    cl_event* event) {
  cl_event own = nullptr;
  const cl_int status =
      true_enqueue()(queue, kernel, dimensions, offset, items, group, waits, wait_for, &own);
  if (status != CL_SUCCESS) return status;
  if (event != nullptr) {
    clRetainEvent(own);
    *event = own;
  }
  std::size_t count = 1;
  for (cl_uint d = 0; d < dimensions; ++d) count *= items[d];
  const std::lock_guard lock(access);
  launches().push_back({name_of(kernel), count, own});
  return status;
}
