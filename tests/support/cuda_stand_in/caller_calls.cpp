// SPDX-License-Identifier: Apache-2.0
// caller_calls.cpp: functions of the library that only its other users call, whom tests play; and
// what tests ask the stand-in itself.
#include "tests/support/cuda_stand_in/state.hpp"

namespace qrtool::cuda {

extern "C" {

Result cuCtxCreate_v2(Context* context, unsigned, Device device) {
  return called(__func__, Needs::start, [&] {
    *context = new Context_{.device = device};
    state().contexts.insert(*context);
    stack().list.push_back(*context);
    return success;
  });
}

Result cuCtxDestroy_v2(Context context) {
  return called(__func__, Needs::start, [&] {
    run_commands();
    state().contexts.erase(known(state().contexts, context, "the context"));
    auto& list = stack().list;
    if (!list.empty() && list.back() == context) list.pop_back();
    return success;
  });
}

Result cuCtxGetCurrent(Context* context) {
  return called(__func__, Needs::start, [&] {
    *context = stack().list.empty() ? nullptr : stack().list.back();
    return success;
  });
}

Result cuCtxSetCurrent(Context context) {
  return called(__func__, Needs::start, [&] {
    auto& list = stack().list;
    if (!list.empty()) list.pop_back();
    if (context != nullptr) list.push_back(known(state().contexts, context, "the context"));
    return success;
  });
}

Result cuCtxGetDevice(Device* device) {
  return called(__func__, Needs::context, [&] { return *device = current()->device, success; });
}

Result cuCtxSynchronize() {
  return called(__func__, Needs::context, [] {
    wait_for_device(current()->device);
    return success;
  });
}

Result cuMemcpyHtoD_v2(Pointer to, const void* from, std::size_t bytes) {
  const Result result = cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
  return result == success ? cuStreamSynchronize(nullptr) : result;
}

Result cuMemcpyDtoH_v2(void* to, Pointer from, std::size_t bytes) {
  const Result result = cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
  return result == success ? cuStreamSynchronize(nullptr) : result;
}

Result cuMemAllocManaged(Pointer* memory, std::size_t bytes, unsigned) {
  return called(__func__, Needs::context, [&] {
    const Context context = current();
    const Memory* const made = make_memory(Memory::Kind::managed, bytes, context, context->device);
    if (made == nullptr) return out_of_memory;
    *memory = made->address;
    return success;
  });
}

Result cuMemAllocAsync(Pointer* memory, std::size_t bytes, Stream stream) {
  Device device = 0;
  const Result result = cuCtxGetDevice(&device);
  if (result != success) return result;
  static std::map<Device, Pool> pools;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Pool& pool = pools[device];
  PoolProperties properties;
  properties.location = device;
  if (pool == nullptr) cuMemPoolCreate(&pool, &properties);
  return cuMemAllocFromPoolAsync(memory, bytes, pool, stream);
}

Result cuStreamBeginCapture_v2(Stream handle, int) {
  return called(__func__, Needs::context, [&] {
    stream_of(handle)->is_recording = true;
    return success;
  });
}

/// The graph is none, since nothing can be recorded.
Result cuStreamEndCapture(Stream handle, void** graph) {
  return called(__func__, Needs::context, [&] {
    stream_of(handle)->is_recording = false;
    *graph = nullptr;
    return success;
  });
}

/// Other words instead of those of QRTOOL_STAND_IN. Calls are counted from here on, and a dead
/// device lives again.
void qrtool_stand_in(const char* words) {
  const std::lock_guard lock(state().mutex);
  read_words(words);
}

/// The calls of a function since then.
unsigned long long qrtool_stand_in_calls(const char* symbol) {
  const std::lock_guard lock(state().mutex);
  return state().calls[symbol];
}

/// The bytes of all device memory that exists.
unsigned long long qrtool_stand_in_bytes() {
  const std::lock_guard lock(state().mutex);
  return state().device_bytes;
}

}  // extern "C"

}  // namespace qrtool::cuda
