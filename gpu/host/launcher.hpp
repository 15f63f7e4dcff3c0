// SPDX-License-Identifier: Apache-2.0
// launcher.hpp: enqueues kernels of a file.
#pragma once

#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "gpu/host/driver.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {

/// Kernel objects, which are made once. Each thread needs its own cache, because setting arguments
/// is not thread-safe.
class KernelCache {
 public:
  using Kernels = std::map<std::string, Kernel, std::less<>>;
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
  Launcher(KernelCache& kernels, Queue& queue, ProgramCache& programs, const ProgramSource& source,
           const Buffer& routes = {})
      : programs_(&programs),
        source_(source),
        kernels_(&kernels.of(programs.key_of(source.file, source.defines))),
        queue_(&queue),
        routes_(routes) {}

  /// Enqueues nothing, but takes down the names of the kernels.
  explicit Launcher(std::set<std::string>& names) : names_(&names) {}
  /// Enqueues nothing, but takes down the launches.
  explicit Launcher(std::vector<TakenLaunch>& launches) : launches_(&launches) {}
  bool is_recorder() const { return names_ != nullptr || launches_ != nullptr; }

  /// Enqueues `groups` work-groups of `group_size` work-items; does nothing if `groups` is 0.
  /// Errors: DeviceError where the device cannot run such groups, or the kernels do not build.
  template <class... Args>
  void operator()(const char* name, index_t groups, int group_size, const Args&... args) {
    const std::array list{Argument(args)..., Argument(routes_)};
    launch(name, groups, group_size, std::span(list).first(sizeof...(args) + (routes_ ? 1 : 0)));
  }

  /// The kernels so far have set the routes of all matrices: the host may read them beside what
  /// follows.
  void mark_routes() {
    if (routed_ != nullptr) *routed_ = queue_->mark();
  }
  /// mark_routes() sets `event`.
  void set_mark(Event& event) { routed_ = &event; }

 private:
  void launch(const char* name, index_t groups, int group_size,
              std::span<const Argument> arguments);
  const Kernel& kernel_of(const char* name);

  std::set<std::string>* names_ = nullptr;
  std::vector<TakenLaunch>* launches_ = nullptr;
  ProgramCache* programs_ = nullptr;
  ProgramSource source_;
  KernelCache::Kernels* kernels_ = nullptr;
  Queue* queue_ = nullptr;
  Buffer routes_;
  Event* routed_ = nullptr;
};

}  // namespace qrtool
