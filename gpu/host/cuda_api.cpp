// SPDX-License-Identifier: Apache-2.0
// cuda_api.cpp: opens CUDA's driver library.
#include "gpu/host/cuda_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace qrtool::cuda {
namespace {

struct Opened {
  Api api;
  std::string trouble;  // empty: the library is there
};

/// The library is never closed, because its threads may outlive any caller.
std::string open(Api& api) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "there is no CUDA driver (libcuda.so.1)";
#define QRTOOL_CUDA_FIND(name, symbol, parameters)                          \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #symbol)); \
  if (api.name == nullptr) return "the CUDA driver is older than 11.4: it has no " #symbol;
  QRTOOL_CUDA_FUNCTIONS(QRTOOL_CUDA_FIND)
#undef QRTOOL_CUDA_FIND
  return {};
}

}  // namespace

std::string text_of(const Api& api, std::string_view call, Result result) {
  const char* name = nullptr;
  if (api.error_name(result, &name) != success || name == nullptr)
    return fmt::format("{}, CUDA error {}", call, result);
  return fmt::format("{}, {}", call, name);
}

const Api* api(std::string* why) {
  static const Opened opened = [] {
    Opened made;
    made.trouble = open(made.api);
    return made;
  }();
  if (opened.trouble.empty()) return &opened.api;
  if (why != nullptr) *why = opened.trouble;
  return nullptr;
}

}  // namespace qrtool::cuda
