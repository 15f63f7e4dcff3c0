// SPDX-License-Identifier: Apache-2.0
// session.cpp: contexts that exist until the process ends.
#include "gpu/host/session.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "gpu/host/start_session.hpp"

namespace qrtool {
namespace {

struct Entry {
  std::unique_ptr<Session> session;
  std::exception_ptr failure;  // of start_session(); nobody knows of it yet
};

struct Sessions {
  std::mutex mutex;
  std::map<std::tuple<int, int, SubGroups, Float64Body>, Entry> list;

  Entry& of(const DeviceInfo& info) {
    return list[{info.index, info.cuda_ordinal, info.sub_groups, info.float64_body}];
  }
};

Sessions& all_sessions() {
  // Never destroyed, because drivers may be unloaded before the destructors of static objects run.
  static auto& sessions = *new Sessions;
  return sessions;
}

std::unique_ptr<Session> make_session(const DeviceInfo& info) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<DeviceHandle> handles = device_handles();
  const auto index = static_cast<std::size_t>(info.index);
  if (index >= handles.size()) throw DeviceError(fmt::format("{} is gone", info.text()));
  std::unique_ptr<Session> session;
  try {
    session = std::make_unique<Session>(info, how_to_open(handles[index], info));
  } catch (const DeviceFailure& failure) {
    throw DeviceError(fmt::format("{}: no context ({})", info.text(), failure.what()));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  session->start_seconds = first_listing_seconds() + seconds.count();
  return session;
}

}  // namespace

Session& session_for(const DeviceInfo& info) {
  Sessions& sessions = all_sessions();
  const std::lock_guard lock(sessions.mutex);
  Entry& entry = sessions.of(info);
  if (const auto failure = std::exchange(entry.failure, nullptr)) std::rethrow_exception(failure);
  if (!entry.session) entry.session = make_session(info);
  return *entry.session;
}

void start_session(const DeviceInfo& info) {
  const DriverScope driver;
  Sessions& sessions = all_sessions();
  const std::lock_guard lock(sessions.mutex);
  Entry& entry = sessions.of(info);
  try {
    if (!entry.session) entry.session = make_session(info);
  } catch (...) {
    entry.failure = std::current_exception();
  }
}

std::vector<DeviceTimes> device_times() {
  Sessions& sessions = all_sessions();
  const std::lock_guard lock(sessions.mutex);
  std::vector<DeviceTimes> times;
  for (const auto& [key, entry] : sessions.list) {
    if (const auto& session = entry.session)
      times.push_back({session->info, session->start_seconds, session->programs.times()});
  }
  return times;
}

}  // namespace qrtool
