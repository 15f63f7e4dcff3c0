// SPDX-License-Identifier: Apache-2.0
// launcher.cpp: enqueues kernels of a file.
#include "gpu/host/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace qrtool {
namespace {

/// The largest work-group in which the device runs a kernel. It runs one that was built for groups
/// of its own (reqd_work_group_size) in these, whatever it says of others: NVIDIA's driver says 256
/// of kernels that it has built for 512 work-items, and runs.
std::size_t most_items_of(const cl::Kernel& kernel, const cl::Device& device) {
  const auto built_for = kernel.getWorkGroupInfo<CL_KERNEL_COMPILE_WORK_GROUP_SIZE>(device);
  return std::max(kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device), built_for[0]);
}

}  // namespace

LimitedKernel& Launcher::kernel_of(const char* name) {
  auto found = kernels_->find(name);
  if (found == kernels_->end()) {
    const cl::Program program = programs_->kernel(source_, name);
    found = kernels_->emplace(name, LimitedKernel(cl::Kernel(program, name), queue_)).first;
  }
  return found->second;
}

LimitedKernel::LimitedKernel(cl::Kernel made, const cl::CommandQueue& queue)
    : kernel(std::move(made)),
      most_items(most_items_of(kernel, queue.getInfo<CL_QUEUE_DEVICE>())) {}

void LimitedKernel::require(const char* name, int group_size) const {
  if (static_cast<std::size_t>(group_size) <= most_items) return;
  throw DeviceError(fmt::format("{} has work-groups of {} work-items, and the device runs it with "
                                "at most {}",
                                name, group_size, most_items),
                    "--backend cpu works without this device");
}

void Launcher::enqueue(const cl::Kernel& kernel, index_t groups, int group_size) {
  const auto local = static_cast<std::size_t>(group_size);
  queue_.enqueueNDRangeKernel(kernel, cl::NullRange, static_cast<std::size_t>(groups) * local,
                              local);
}

}  // namespace qrtool
