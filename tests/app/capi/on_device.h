/* SPDX-License-Identifier: Apache-2.0
 * on_device.h: arrays in the memory of a GPU, by CUDA's driver interface, or by the library that
 * stands in for it where there is no GPU (tests/support/cuda_stand_in). */
#ifndef QRTOOL_TESTS_ON_DEVICE_H
#define QRTOOL_TESTS_ON_DEVICE_H

#include <dlfcn.h>

#include "expect.h"

typedef unsigned long long cuda_pointer;

struct cuda {
  int (*init)(unsigned flags);
  int (*retain)(void** context, int device);
  int (*push)(void* context);
  int (*pop)(void** context);
  int (*current)(void** context);
  int (*create_context)(void** context, unsigned flags, int device);
  int (*destroy_context)(void* context);
  int (*allocate)(cuda_pointer* memory, size_t bytes);
  int (*allocate_managed)(cuda_pointer* memory, size_t bytes, unsigned flags);
  int (*free)(cuda_pointer memory);
  int (*to_device)(cuda_pointer to, const void* from, size_t bytes);
  int (*to_device_on)(cuda_pointer to, const void* from, size_t bytes, void* stream);
  int (*to_host)(void* to, cuda_pointer from, size_t bytes);
  int (*to_host_on)(void* to, cuda_pointer from, size_t bytes, void* stream);
  int (*create_stream)(void** stream, unsigned flags);
  int (*finish_stream)(void* stream);
  int (*destroy_stream)(void* stream);
  int (*finish)(void);
  /* Of the stand-in alone. */
  void (*stand_in)(const char* words);
  uint64_t (*stand_in_calls)(const char* symbol);
  uint64_t (*stand_in_bytes)(void);
};
static struct cuda cuda;
static void* primary_context = NULL;

/* Makes the primary context current, until close_cuda(). */
static inline int open_cuda(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
#define FIND(member, symbol) *(void**)&cuda.member = dlsym(library, symbol)
  FIND(init, "cuInit");
  FIND(retain, "cuDevicePrimaryCtxRetain");
  FIND(push, "cuCtxPushCurrent_v2");
  FIND(pop, "cuCtxPopCurrent_v2");
  FIND(current, "cuCtxGetCurrent");
  FIND(create_context, "cuCtxCreate_v2");
  FIND(destroy_context, "cuCtxDestroy_v2");
  FIND(allocate, "cuMemAlloc_v2");
  FIND(allocate_managed, "cuMemAllocManaged");
  FIND(free, "cuMemFree_v2");
  FIND(to_device, "cuMemcpyHtoD_v2");
  FIND(to_device_on, "cuMemcpyHtoDAsync_v2");
  FIND(to_host, "cuMemcpyDtoH_v2");
  FIND(to_host_on, "cuMemcpyDtoHAsync_v2");
  FIND(create_stream, "cuStreamCreate");
  FIND(finish_stream, "cuStreamSynchronize");
  FIND(destroy_stream, "cuStreamDestroy_v2");
  FIND(finish, "cuCtxSynchronize");
  FIND(stand_in, "qrtool_stand_in");
  FIND(stand_in_calls, "qrtool_stand_in_calls");
  FIND(stand_in_bytes, "qrtool_stand_in_bytes");
#undef FIND
  if (cuda.init(0) != 0 || cuda.retain(&primary_context, 0) != 0) return 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  return cuda.push(primary_context) == 0;
}
/* Returns the program's exit code. */
static inline int close_cuda(void) {
  EXPECT(cuda.pop(&primary_context) == 0);
  return wrong_claims > 0;
}

/* A copy on the device, with the bytes between its entries. Its address is `shift` bytes behind
 * that of memory, which is aligned to 256 bytes. */
struct device_array {
  struct array host;
  cuda_pointer memory, first;
};
static inline struct device_array shifted_on_device(const struct array* a, size_t shift) {
  struct device_array copy = {*a, 0, 0};
  EXPECT(cuda.allocate(&copy.memory, a->bytes + 64 + shift) == 0);
  copy.first = copy.memory + shift + (cuda_pointer)(a->first - a->memory);
  EXPECT(cuda.to_device(copy.memory + shift, a->memory, a->bytes) == 0);
  EXPECT(cuda.finish() == 0); /* streams of others do not wait for the legacy one */
  return copy;
}
static inline struct device_array on_device(const struct array* a) {
  return shifted_on_device(a, 0);
}
static inline void free_device_array(struct device_array* a) { EXPECT(cuda.free(a->memory) == 0); }
/* Whether it has these bytes now, those between its entries too. */
static inline int has_bytes_of(const struct device_array* a, const struct array* expected) {
  unsigned char* bytes = malloc(a->host.bytes);
  const cuda_pointer begin = a->first - (cuda_pointer)(a->host.first - a->host.memory);
  int same;
  EXPECT(cuda.finish() == 0);
  EXPECT(cuda.to_host(bytes, begin, a->host.bytes) == 0);
  same = a->host.bytes == expected->bytes && memcmp(bytes, expected->memory, expected->bytes) == 0;
  free(bytes);
  return same;
}
static inline qrtool_matrices device_matrices(const struct device_array* a) {
  qrtool_matrices result = matrices(&a->host);
  result.data = (void*)(uintptr_t)a->first;
  return result;
}
static inline qrtool_place device_place(const struct device_array* a) {
  qrtool_place result = place(&a->host);
  result.data = (void*)(uintptr_t)a->first;
  return result;
}

#endif
