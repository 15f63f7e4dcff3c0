// SPDX-License-Identifier: Apache-2.0
// launcher.cpp: enqueues kernels of a file.
#include "gpu/host/launcher.hpp"

namespace qrtool {

cl::Kernel& Launcher::kernel_of(const char* name) {
  auto found = kernels_->find(name);
  if (found == kernels_->end()) {
    const cl::Program program = programs_->kernel(source_, name);
    found = kernels_->emplace(name, cl::Kernel(program, name)).first;
  }
  return found->second;
}

void Launcher::enqueue(const cl::Kernel& kernel, index_t groups, int group_size) {
  const auto local = static_cast<std::size_t>(group_size);
  queue_.enqueueNDRangeKernel(kernel, cl::NullRange, static_cast<std::size_t>(groups) * local,
                              local);
}

}  // namespace qrtool
