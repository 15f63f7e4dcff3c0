// SPDX-License-Identifier: Apache-2.0
// cuda_api.hpp: the functions of CUDA's driver interface that gpu/host calls, found at run time in
// libcuda.so.1. Names, types and numbers are those of NVIDIA's cuda.h. Private to gpu/host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace qrtool::cuda {

using Result = int;
using Device = int;
using Pointer = unsigned long long;  // CUdeviceptr
using Context = struct Context_*;
using Module = struct Module_*;
using Function = struct Function_*;
using Stream = struct Stream_*;
using Event = struct Event_*;
using Link = struct Link_*;
using Pool = struct Pool_*;

// Results.
inline constexpr Result success = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3,
                        deinitialized = 4, invalid_context = 201, capture_implicit = 906;
// Attributes of devices, functions and pointers.
inline constexpr int pci_bus = 33, pci_device = 34, pci_domain = 50, capability_major = 75,
                     capability_minor = 76, has_memory_pools = 115;
inline constexpr int most_threads_of_function = 0;
inline constexpr int pointer_context = 1, pointer_memory_type = 2, pointer_is_managed = 8,
                     pointer_device = 9;
inline constexpr unsigned host_memory = 1, device_memory = 2;
// Options of the linker and inputs to it.
inline constexpr int link_max_registers = 0, link_error_log = 5, link_error_log_bytes = 6;
inline constexpr int input_ptx = 1;
inline constexpr unsigned non_blocking_stream = 1;
inline constexpr int capture_none = 0;
inline constexpr int pool_release_threshold = 4;

struct Uuid {
  unsigned char bytes[16];
};

/// CUDA_MEMCPY2D_v2.
struct Copy2d {
  std::size_t from_x = 0, from_y = 0;
  unsigned from_type = 0;
  const void* from_host = nullptr;
  Pointer from_device = 0;
  void* from_array = nullptr;
  std::size_t from_pitch = 0;
  std::size_t to_x = 0, to_y = 0;
  unsigned to_type = 0;
  void* to_host = nullptr;
  Pointer to_device = 0;
  void* to_array = nullptr;
  std::size_t to_pitch = 0;
  std::size_t width = 0, height = 0;
};

/// CUmemPoolProps.
struct PoolProperties {
  int allocation_type = 1;  // pinned
  int handle_types = 0;     // none
  int location_type = 1;    // a device
  int location = 0;
  void* security = nullptr;
  std::size_t max_bytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

/// name, symbol in the library, parameters
#define QRTOOL_CUDA_FUNCTIONS(F)                                                                 \
  F(init, cuInit, (unsigned flags))                                                              \
  F(device_count, cuDeviceGetCount, (int* count))                                                \
  F(device, cuDeviceGet, (Device * device, int ordinal))                                         \
  F(device_name, cuDeviceGetName, (char* name, int length, Device device))                       \
  F(device_uuid, cuDeviceGetUuid_v2, (Uuid * uuid, Device device))                               \
  F(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, Device device))          \
  F(retain_context, cuDevicePrimaryCtxRetain, (Context * context, Device device))                \
  F(push_context, cuCtxPushCurrent_v2, (Context context))                                        \
  F(pop_context, cuCtxPopCurrent_v2, (Context * context))                                        \
  F(finish_context, cuCtxSynchronize, ())                                                        \
  F(load_module, cuModuleLoadDataEx,                                                             \
    (Module * module, const void* image, unsigned options, int* names, void** values))           \
  F(unload_module, cuModuleUnload, (Module module))                                              \
  F(function, cuModuleGetFunction, (Function * function, Module module, const char* name))       \
  F(function_attribute, cuFuncGetAttribute, (int* value, int attribute, Function function))      \
  F(link_create, cuLinkCreate_v2, (unsigned options, int* names, void** values, Link* link))     \
  F(link_add, cuLinkAddData_v2,                                                                  \
    (Link link, int type, void* data, std::size_t bytes, const char* name, unsigned options,     \
     int* names, void** values))                                                                 \
  F(link_complete, cuLinkComplete, (Link link, void** image, std::size_t* bytes))                \
  F(link_destroy, cuLinkDestroy, (Link link))                                                    \
  F(launch, cuLaunchKernel,                                                                      \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments, \
     void** extra))                                                                              \
  F(allocate, cuMemAlloc_v2, (Pointer * memory, std::size_t bytes))                              \
  F(free, cuMemFree_v2, (Pointer memory))                                                        \
  F(allocate_host, cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags))           \
  F(free_host, cuMemFreeHost, (void* memory))                                                    \
  F(pool_create, cuMemPoolCreate, (Pool * pool, const PoolProperties* properties))               \
  F(pool_set, cuMemPoolSetAttribute, (Pool pool, int attribute, void* value))                    \
  F(pool_trim, cuMemPoolTrimTo, (Pool pool, std::size_t bytes))                                  \
  F(pool_allocate, cuMemAllocFromPoolAsync,                                                      \
    (Pointer * memory, std::size_t bytes, Pool pool, Stream stream))                             \
  F(free_async, cuMemFreeAsync, (Pointer memory, Stream stream))                                 \
  F(copy_to_device, cuMemcpyHtoDAsync_v2,                                                        \
    (Pointer to, const void* from, std::size_t bytes, Stream stream))                            \
  F(copy_to_host, cuMemcpyDtoHAsync_v2,                                                          \
    (void* to, Pointer from, std::size_t bytes, Stream stream))                                  \
  F(copy_on_device, cuMemcpyDtoDAsync_v2,                                                        \
    (Pointer to, Pointer from, std::size_t bytes, Stream stream))                                \
  F(copy_2d, cuMemcpy2DAsync_v2, (const Copy2d* copy, Stream stream))                            \
  F(fill, cuMemsetD32Async, (Pointer to, unsigned word, std::size_t words, Stream stream))       \
  F(stream_create, cuStreamCreate, (Stream * stream, unsigned flags))                            \
  F(stream_destroy, cuStreamDestroy_v2, (Stream stream))                                         \
  F(stream_wait, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                \
  F(stream_finish, cuStreamSynchronize, (Stream stream))                                         \
  F(stream_capture, cuStreamIsCapturing, (Stream stream, int* status))                           \
  F(stream_context, cuStreamGetCtx, (Stream stream, Context * context))                          \
  F(event_create, cuEventCreate, (Event * event, unsigned flags))                                \
  F(event_record, cuEventRecord, (Event event, Stream stream))                                   \
  F(event_wait, cuEventSynchronize, (Event event))                                               \
  F(event_time, cuEventElapsedTime, (float* milliseconds, Event from, Event to))                 \
  F(event_destroy, cuEventDestroy_v2, (Event event))                                             \
  F(pointer_attributes, cuPointerGetAttributes,                                                  \
    (unsigned count, int* attributes, void** values, Pointer pointer))                           \
  F(error_name, cuGetErrorName, (Result result, const char** name))

/// The name of the symbol of each function, for messages.
namespace symbol {
#define QRTOOL_CUDA_SYMBOL(name, symbol, parameters) inline constexpr const char name[] = #symbol;
QRTOOL_CUDA_FUNCTIONS(QRTOOL_CUDA_SYMBOL)
#undef QRTOOL_CUDA_SYMBOL
}  // namespace symbol

struct Api {
#define QRTOOL_CUDA_MEMBER(name, symbol, parameters) Result(*name) parameters = nullptr;
  QRTOOL_CUDA_FUNCTIONS(QRTOOL_CUDA_MEMBER)
#undef QRTOOL_CUDA_MEMBER
};

/// Such as "cuMemAlloc_v2, CUDA_ERROR_OUT_OF_MEMORY".
std::string text_of(const Api& api, std::string_view call, Result result);

/// The library, opened once in a process, but not initialised; null if that fails. `why` becomes
/// the reason in a sentence.
const Api* api(std::string* why = nullptr);

}  // namespace qrtool::cuda
