// SPDX-License-Identifier: Apache-2.0
// launcher.hpp: enqueues kernels of a program.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/batch.hpp"
#include "gpu/host/opencl.hpp"

namespace qrtool {

/// Kernel objects, which are made once. Each thread needs its own cache, because setting arguments
/// is not thread-safe.
class KernelCache {
 public:
  cl::Kernel& get(const cl::Program& program, const std::string& name);

 private:
  std::map<std::pair<cl_program, std::string>, cl::Kernel> kernels_;
};

class Launcher {
 public:
  /// `routes`: the routes of the matrices, for a program built with FLAGGED; they are the last
  /// argument of every kernel.
  Launcher(KernelCache& kernels, const cl::CommandQueue& queue, const cl::Program& program,
           const cl::Buffer& routes = {})
      : kernels_(kernels), queue_(queue), program_(program), routes_(routes) {}

  /// Enqueues `groups` work-groups of `group_size` work-items; does nothing if `groups` is 0.
  template <class... Args>
  void operator()(const char* name, index_t groups, int group_size, const Args&... args) {
    if (groups == 0) return;
    cl::Kernel& kernel = kernels_.get(program_, name);
    cl_uint index = 0;
    (kernel.setArg(index++, args), ...);
    if (routes_() != nullptr) kernel.setArg(index, routes_);
    enqueue(kernel, groups, group_size);
  }

 private:
  void enqueue(const cl::Kernel& kernel, index_t groups, int group_size);

  KernelCache& kernels_;
  cl::CommandQueue queue_;
  cl::Program program_;
  cl::Buffer routes_;
};

}  // namespace qrtool
