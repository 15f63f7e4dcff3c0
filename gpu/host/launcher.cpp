// SPDX-License-Identifier: Apache-2.0
// launcher.cpp: enqueues kernels of a program.
#include "gpu/host/launcher.hpp"

namespace qrtool {

cl::Kernel& KernelCache::get(const cl::Program& program, const std::string& name) {
  cl::Kernel& kernel = kernels_[{program(), name}];
  if (kernel() == nullptr) kernel = cl::Kernel(program, name.c_str());
  return kernel;
}

void Launcher::enqueue(const cl::Kernel& kernel, index_t groups, int group_size) {
  const auto local = static_cast<std::size_t>(group_size);
  queue_.enqueueNDRangeKernel(kernel, cl::NullRange, static_cast<std::size_t>(groups) * local,
                              local);
}

}  // namespace qrtool
