// SPDX-License-Identifier: Apache-2.0
// session.cpp: contexts that exist until the process ends.
#include "gpu/host/session.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>

#include "core/error.hpp"
#include "gpu/host/opencl_device.hpp"

namespace qrtool {

Session& session_for(const DeviceInfo& info) {
  static std::mutex mutex;
  // Never destroyed, because drivers may be unloaded before the destructors of static objects run.
  static auto& sessions = *new std::map<std::pair<int, SubGroups>, std::unique_ptr<Session>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Session>& session = sessions[{info.index, info.sub_groups}];
  if (session) return *session;
  const std::vector<DeviceHandle> handles = device_handles();
  const auto index = static_cast<std::size_t>(info.index);
  if (index >= handles.size()) throw DeviceError(fmt::format("{} is gone", info.text()));
  try {
    session = std::make_unique<Session>(info, handles[index].device);
  } catch (const cl::Error& error) {
    throw DeviceError(fmt::format("{}: no context ({}, OpenCL error {})", info.text(), error.what(),
                                  error.err()));
  }
  return *session;
}

}  // namespace qrtool
