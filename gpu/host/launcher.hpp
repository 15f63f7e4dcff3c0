// SPDX-License-Identifier: Apache-2.0
// launcher.hpp: enqueues kernels of a file.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/batch.hpp"
#include "gpu/host/opencl.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {

/// A kernel, and the largest work-group in which the device runs it: registers may allow fewer
/// work-items than the device's own limit, except where the kernel was built for its size.
struct LimitedKernel {
  LimitedKernel(cl::Kernel made, const cl::CommandQueue& queue);
  /// Errors: DeviceError.
  void require(const char* name, int group_size) const;

  cl::Kernel kernel;
  std::size_t most_items;
};

/// Kernel objects, which are made once. Each thread needs its own cache, because setting arguments
/// is not thread-safe.
class KernelCache {
 public:
  using Kernels = std::map<std::string, LimitedKernel, std::less<>>;
  /// The kernels of a file with defines, by name (ProgramCache::key_of).
  Kernels& of(const std::string& key) { return kernels_[key]; }

 private:
  std::map<std::string, Kernels> kernels_;
};

/// A launch that was only taken down: its kernel, the work-items of a group, and the bytes of each
/// argument but the buffers.
struct TakenLaunch {
  std::string kernel;
  int group_size;
  std::vector<std::vector<std::byte>> values;
};

class Launcher {
 public:
  /// `routes`: the routes of the matrices, for a program built with FLAGGED; they are the last
  /// argument of every kernel.
  Launcher(KernelCache& kernels, const cl::CommandQueue& queue, ProgramCache& programs,
           const ProgramSource& source, const cl::Buffer& routes = {})
      : programs_(&programs),
        source_(source),
        kernels_(&kernels.of(programs.key_of(source.file, source.defines))),
        queue_(queue),
        routes_(routes) {}

  /// Enqueues nothing, but takes down the names of the kernels.
  explicit Launcher(std::set<std::string>& names) : names_(&names) {}
  bool only_takes_names() const { return names_ != nullptr; }
  /// Enqueues nothing, but takes down the launches.
  explicit Launcher(std::vector<TakenLaunch>& launches) : launches_(&launches) {}

  /// Enqueues `groups` work-groups of `group_size` work-items; does nothing if `groups` is 0.
  /// Errors: DeviceError where the device cannot run such groups, or the kernels do not build.
  template <class... Args>
  void operator()(const char* name, index_t groups, int group_size, const Args&... args) {
    if (groups == 0) return;
    if (only_takes_names()) {
      names_->insert(name);
      return;
    }
    if (launches_ != nullptr) {
      launches_->push_back({name, group_size, {}});
      (take_value(args), ...);
      return;
    }
    LimitedKernel& limited = kernel_of(name);
    limited.require(name, group_size);
    cl::Kernel& kernel = limited.kernel;
    cl_uint index = 0;
    (kernel.setArg(index++, args), ...);
    if (routes_() != nullptr) kernel.setArg(index, routes_);
    enqueue(kernel, groups, group_size);
  }

 private:
  template <class Arg>
  void take_value(const Arg& arg) {
    if constexpr (!std::is_same_v<Arg, cl::Buffer>) {
      const auto bytes = std::as_bytes(std::span(&arg, 1));
      launches_->back().values.emplace_back(bytes.begin(), bytes.end());
    }
  }
  LimitedKernel& kernel_of(const char* name);
  void enqueue(const cl::Kernel& kernel, index_t groups, int group_size);

  std::set<std::string>* names_ = nullptr;
  std::vector<TakenLaunch>* launches_ = nullptr;
  ProgramCache* programs_ = nullptr;
  ProgramSource source_;
  KernelCache::Kernels* kernels_ = nullptr;
  cl::CommandQueue queue_;
  cl::Buffer routes_;
};

}  // namespace qrtool
