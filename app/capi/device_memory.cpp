// SPDX-License-Identifier: Apache-2.0
// device_memory.cpp: device memory for callers, and arrays in it that own themselves.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "app/capi/context.hpp"
#include "app/capi/device_calls.hpp"
#include "app/capi/dlpack.hpp"

namespace qrtool::capi {
namespace {

/// An array whose deleter frees its memory when the device is idle, because whoever has taken it
/// may use it on other streams. `arrays` stays until the process ends.
template <class Tensor>
struct OwnedArray {
  Tensor tensor = {};
  std::vector<std::int64_t> shape, strides;
  const CallerArrays* arrays = nullptr;
  pid_t process = getpid();

  static void destroy(Tensor* tensor) {
    if (tensor == nullptr) return;
    const std::unique_ptr<OwnedArray> own(static_cast<OwnedArray*>(tensor->manager_ctx));
    // A child of the process does not have the device.
    if (own->process != getpid() || own->tensor.dl_tensor.data == nullptr) return;
    try {
      own->arrays->free_when_idle(own->tensor.dl_tensor.data);
    } catch (...) {  // a deleter cannot say it, and the driver has freed the memory
    }
  }
};

DLDataType dlpack_type(ElementType type) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
  return {is_complex(type) ? kDLComplex : kDLFloat, bits, 1};
}

template <class Tensor>
void* exported(const DeviceCalls& calls, void* memory, DLDataType type,
               std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  auto own = std::make_unique<OwnedArray<Tensor>>();
  own->shape = std::move(shape);
  own->strides = std::move(strides);
  own->arrays = &calls.arrays();
  own->tensor.dl_tensor = {.data = memory,
                           .device = {kDLCUDA, calls.cuda_ordinal()},
                           .ndim = static_cast<std::int32_t>(own->shape.size()),
                           .dtype = type,
                           .shape = own->shape.data(),
                           .strides = own->strides.data(),
                           .byte_offset = 0};
  own->tensor.manager_ctx = own.get();
  own->tensor.deleter = &OwnedArray<Tensor>::destroy;
  if constexpr (requires { own->tensor.version; }) own->tensor.version = {1, 0};
  return &own.release()->tensor;
}

}  // namespace
}  // namespace qrtool::capi

using namespace qrtool;
using namespace qrtool::capi;

int qrtool_release(qrtool_context* context) {
  return on_context(context, [&](qrtool_context& c) {
    c.release();
    return QRTOOL_OK;
  });
}

int qrtool_allocate(qrtool_context* context, size_t bytes, void* stream, void** memory) {
  return on_context(context, [&](qrtool_context& c) {
    if (memory == nullptr) throw UsageError("qrtool_allocate: memory is NULL");
    *memory = nullptr;
    const DeviceCalls& calls = c.device_calls();
    calls.require_fit(stream);
    calls.call("to allocate memory", [&](const CallerArrays& arrays) {
      *memory = arrays.allocate_on(stream, std::max<std::size_t>(bytes, 1));
    });
    return QRTOOL_OK;
  });
}

int qrtool_free(qrtool_context* context, void* memory, void* stream) {
  return on_context(context, [&](qrtool_context& c) {
    const DeviceCalls& calls = c.device_calls();
    if (memory == nullptr) return QRTOOL_OK;
    calls.call("to free memory",
               [&](const CallerArrays& arrays) { arrays.free_on(stream, memory); });
    return QRTOOL_OK;
  });
}

int qrtool_export(qrtool_context* context, void* memory, int32_t type, int32_t dimensions,
                  const int64_t* shape, const int64_t* strides, int32_t versioned, void** managed) {
  return on_context(context, [&](qrtool_context& c) {
    if (managed == nullptr || (shape == nullptr && dimensions > 0))
      throw UsageError("qrtool_export: managed or shape is NULL");
    *managed = nullptr;
    require_within("versioned", versioned, 1);
    require_within("dimensions", dimensions, 64);
    qrtool_matrices of_type{};
    of_type.type = type;
    const DLDataType of_dlpack = dlpack_type(type_of(of_type, "type"));
    std::vector<std::int64_t> sizes(shape, shape + dimensions), steps(sizes.size(), 1);
    if (std::ranges::any_of(sizes, [](std::int64_t size) { return size < 0; }))
      throw UsageError("qrtool_export: a size of shape is negative");
    if (strides != nullptr) {
      steps.assign(strides, strides + dimensions);
    } else {
      for (std::size_t i = sizes.size(); i > 1; --i) steps[i - 2] = steps[i - 1] * sizes[i - 1];
    }
    const auto make =
        versioned == 1 ? &exported<DLManagedTensorVersioned> : &exported<DLManagedTensor>;
    *managed = make(c.device_calls(), memory, of_dlpack, std::move(sizes), std::move(steps));
    return QRTOOL_OK;
  });
}
