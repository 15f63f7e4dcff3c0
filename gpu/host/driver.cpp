// SPDX-License-Identifier: Apache-2.0
// driver.cpp: what is the same for all drivers.
#include "gpu/host/driver.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

void throw_device_error(const DeviceFailure& failure, const DeviceInfo& info,
                        std::string_view where) {
  throw DeviceError(fmt::format("{} failed {} ({})", info.text(), where, failure.what()),
                    "--backend cpu works without this device");
}

void wait_for_all(std::span<const Event> events) {
  for (const Event& event : events) event->wait();
}

double seconds_between(const Event& first, const Event& last) {
  return std::max(0.0, first->seconds_to_end(QueueCommand::Moment::end, *last));
}

double seconds_of(std::span<const Event> events) {
  return std::max(0.0, events.front()->seconds_to_end(QueueCommand::Moment::start, *events.back()));
}

Buffer DeviceMemory::grown(Buffer& kept, std::size_t bytes) const {
  if (!kept || kept.bytes() < bytes) {
    kept = {};  // frees it first
    kept = allocate(bytes);
  }
  return kept;
}

}  // namespace qrtool
