// SPDX-License-Identifier: Apache-2.0
// device_calls.cpp: whose memory the arrays of a call are, and engines for such calls.
#include "app/capi/device_calls.hpp"

#include <fmt/format.h>

#include "app/engine/opencl.hpp"

namespace qrtool::capi {

DeviceCalls::DeviceCalls(std::shared_ptr<Backend> backend, const CallerArrays& arrays,
                         int cuda_ordinal, const StreamAllocator& allocator)
    : backend_(std::move(backend)),
      arrays_(arrays),
      cuda_ordinal_(cuda_ordinal),
      allocator_(allocator) {}

void DeviceCalls::call(const char* what,
                       const std::function<void(const CallerArrays&)>& body) const {
  try {
    body(arrays_);
  } catch (const DeviceFailure& failure) {
    const std::string text =
        fmt::format("{} failed {} ({})", backend_->device(), what, failure.what());
    if (failure.is_memory_short()) throw LimitError(text);
    throw DeviceError(text);
  }
}

AddressKind DeviceCalls::kind_of(const CallArray& array) const {
  AddressKind kind = AddressKind::host;
  call("when it was asked for an address",
       [&](const CallerArrays& device) { kind = device.kind_of(array.data); });
  return kind;
}

bool DeviceCalls::are_there(std::span<const CallArray> call) const {
  const char *there = nullptr, *on_host = nullptr;
  for (const CallArray& array : call) {
    if (!array.has_entries) continue;
    switch (kind_of(array)) {
      case AddressKind::host:
        on_host = array.name;
        break;
      case AddressKind::device:
        there = array.name;
        break;
      case AddressKind::other_device:
        throw UsageError(fmt::format("{} is memory of another device than that of the context, {}",
                                     array.name, backend_->device()));
      case AddressKind::other_context:
        throw UsageError(
            fmt::format("{} is memory of another CUDA context than the device's "
                        "primary one",
                        array.name));
    }
    if (there != nullptr && on_host != nullptr)
      throw UsageError(
          fmt::format("{} is device memory and {} is host memory; the arrays of a "
                      "call are all of one kind",
                      there, on_host));
  }
  return there != nullptr;
}

void DeviceCalls::require_on_host(std::span<const CallArray> call) const {
  for (const CallArray& array : call)
    if (array.has_entries && array.data != nullptr && kind_of(array) != AddressKind::host)
      throw UsageError(fmt::format("{} must be host memory, and is device memory", array.name));
}

void DeviceCalls::require_fit(void* stream) const {
  call("when it was asked for a stream", [&](const CallerArrays& device) {
    if (!device.is_own_stream(stream))
      throw UsageError("stream belongs to another device or context than the arrays");
    if (device.is_recording(stream))
      throw UsageError("stream is being captured, and calls of qrtool cannot be recorded");
  });
}

DeviceCalls::Engine::Engine(DeviceCalls& calls) : calls_(calls) {
  {
    const std::lock_guard lock(calls.mutex_);
    if (!calls.idle_.empty()) {
      engine_ = std::move(calls.idle_.back());
      calls.idle_.pop_back();
    }
  }
  if (!engine_) engine_ = make_opencl_stream_engine(*calls.backend_, calls.allocator_);
}

DeviceCalls::Engine::~Engine() {
  const std::lock_guard lock(calls_.mutex_);
  calls_.idle_.push_back(std::move(engine_));
}

void DeviceCalls::release() {
  {
    const std::lock_guard lock(mutex_);
    idle_.clear();
  }
  call("to release memory", [](const CallerArrays& device) { device.release(); });
}

}  // namespace qrtool::capi
