// SPDX-License-Identifier: Apache-2.0
// launcher.cpp: enqueues kernels of a file.
#include "gpu/host/launcher.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace qrtool {
namespace {

TakenLaunch taken(const char* name, int group_size, std::span<const Argument> arguments) {
  TakenLaunch launch{name, group_size, {}};
  for (const Argument& argument : arguments) {
    if (argument.is_buffer) continue;
    const auto* const bytes = static_cast<const std::byte*>(argument.data);
    launch.values.emplace_back(bytes, bytes + argument.bytes);
  }
  return launch;
}

}  // namespace

const Kernel& Launcher::kernel_of(const char* name) {
  auto found = kernels_->find(name);
  if (found == kernels_->end())
    found = kernels_->emplace(name, programs_->kernel(source_, name)).first;
  return found->second;
}

void Launcher::launch(const char* name, index_t groups, int group_size,
                      std::span<const Argument> arguments) {
  if (groups == 0) return;
  if (names_ != nullptr) {
    names_->insert(name);
    return;
  }
  if (launches_ != nullptr) {
    launches_->push_back(taken(name, group_size, arguments));
    return;
  }
  const Kernel& kernel = kernel_of(name);
  const auto items = static_cast<std::size_t>(group_size);
  if (items > kernel.most_items)
    throw DeviceError(fmt::format("{} has work-groups of {} work-items, and the device runs it "
                                  "with at most {}",
                                  name, items, kernel.most_items),
                      "--backend cpu works without this device");
  queue_->launch(kernel, static_cast<std::size_t>(groups), items, arguments);
}

}  // namespace qrtool
