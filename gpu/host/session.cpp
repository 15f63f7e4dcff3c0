// SPDX-License-Identifier: Apache-2.0
// session.cpp: contexts that exist until the process ends.
#include "gpu/host/session.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "core/error.hpp"
#include "gpu/host/opencl_device.hpp"

namespace qrtool {
namespace {

struct Sessions {
  std::mutex mutex;
  std::map<std::tuple<int, SubGroups, Float64Body>, std::unique_ptr<Session>> list;
};

Sessions& all_sessions() {
  // Never destroyed, because drivers may be unloaded before the destructors of static objects run.
  static auto& sessions = *new Sessions;
  return sessions;
}

}  // namespace

Session& session_for(const DeviceInfo& info) {
  Sessions& sessions = all_sessions();
  const std::lock_guard lock(sessions.mutex);
  std::unique_ptr<Session>& session =
      sessions.list[{info.index, info.sub_groups, info.float64_body}];
  if (session) return *session;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<DeviceHandle> handles = device_handles();
  const auto index = static_cast<std::size_t>(info.index);
  if (index >= handles.size()) throw DeviceError(fmt::format("{} is gone", info.text()));
  try {
    session = std::make_unique<Session>(info, handles[index].device);
  } catch (const cl::Error& error) {
    throw DeviceError(fmt::format("{}: no context ({}, OpenCL error {})", info.text(), error.what(),
                                  error.err()));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  session->start_seconds = first_listing_seconds() + seconds.count();
  return *session;
}

std::vector<DeviceTimes> device_times() {
  Sessions& sessions = all_sessions();
  const std::lock_guard lock(sessions.mutex);
  std::vector<DeviceTimes> times;
  for (const auto& [key, session] : sessions.list) {
    if (session)
      times.push_back({session->info, session->start_seconds, session->programs.times()});
  }
  return times;
}

}  // namespace qrtool
