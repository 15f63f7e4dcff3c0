// SPDX-License-Identifier: Apache-2.0
// cuda_fixture.hpp: helpers for the tests of CUDA's driver, which run on a GPU or on the stand-in
// for its library (tests/support/cuda_stand_in).
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "gpu/host/cuda_api.hpp"
#include "gpu/host/device.hpp"
#include "gpu/host/session.hpp"

namespace qrtool::test {

/// A function of the library that gpu/host does not call.
template <class Function>
Function* cuda_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

inline bool is_stand_in() { return cuda_function<void(const char*)>("qrtool_stand_in") != nullptr; }

/// Words for the stand-in, until the end of the scope.
class Words {
 public:
  explicit Words(const std::string& words) { set(words); }
  ~Words() { set(""); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  static void set(const std::string& words) {
    cuda_function<void(const char*)>("qrtool_stand_in")(words.c_str());
  }
  /// The calls of a function since the words were set.
  static unsigned long long calls(const char* symbol) {
    return cuda_function<unsigned long long(const char*)>("qrtool_stand_in_calls")(symbol);
  }
};

/// All device memory of the stand-in that exists.
inline unsigned long long device_bytes() {
  return cuda_function<unsigned long long()>("qrtool_stand_in_bytes")();
}

/// The first GPU of CUDA, or nothing.
inline std::optional<DeviceInfo> cuda_device() {
  try {
    return choose_device("cuda:0");
  } catch (const DeviceError&) {
    return std::nullopt;
  }
}

/// A context of its own, whatever the process has.
inline std::unique_ptr<DeviceContext> open_cuda_context(const DeviceInfo& info) {
  for (const DeviceHandle& handle : device_handles())
    if (handle.info.index == info.index) return how_to_open(handle, info)();
  return nullptr;
}

/// Where the stand-in is asked for, it has to be there.
#define SKIP_WITHOUT_CUDA()                                                          \
  if (!cuda_device()) {                                                              \
    const char* const pretended = std::getenv("QRTOOL_PRETEND");                     \
    const bool is_wanted = pretended != nullptr && std::string(pretended) == "cuda"; \
    ASSERT_FALSE(is_wanted) << "the stand-in for CUDA does not work";                \
    GTEST_SKIP() << "no CUDA device";                                                \
  }
#define SKIP_WITHOUT_STAND_IN() \
  SKIP_WITHOUT_CUDA();          \
  if (!is_stand_in()) GTEST_SKIP() << "a GPU does not fail when it is told to"

/// A kernel with arguments of every kind that kernels of this project have.
inline constexpr std::string_view mixed_text = R"(
typedef struct { int count; float factor; double added; } Mixed;
__kernel void mixed_sum(__global float* results, __global const float* from, Mixed mixed, int whole,
                  float single, double more, __global const float* none) {
  __local float shared[32];
  const int i = get_global_id(0), item = get_local_id(0);
  shared[item] = i < mixed.count ? from[i] : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < mixed.count && none == 0)
    results[i] = shared[item] * mixed.factor + (float)mixed.added + whole + single + (float)more;
}
__kernel void add_one(__global float* numbers) { numbers[get_global_id(0)] += 1; }
)";
inline constexpr const char* mixed_options = "-cl-std=CL1.2";

struct Mixed {
  int count;
  float factor;
  double added;
};

}  // namespace qrtool::test
