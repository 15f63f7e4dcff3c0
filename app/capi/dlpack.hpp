// SPDX-License-Identifier: Apache-2.0
// dlpack.hpp: the structs of DLPack 1.0 (dlpack.h of github.com/dmlc/dlpack), by which libraries
// hand arrays to each other. Their names and layouts are DLPack's.
#pragma once

#include <cstdint>

namespace qrtool::capi {

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
inline constexpr std::int32_t kDLCUDA = 2;

struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
inline constexpr std::uint8_t kDLFloat = 2, kDLComplex = 5;

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  struct {
    std::uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};
static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 &&
              sizeof(DLManagedTensorVersioned) == 80);

}  // namespace qrtool::capi
