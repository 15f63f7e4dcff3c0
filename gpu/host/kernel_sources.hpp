// SPDX-License-Identifier: Apache-2.0
// kernel_sources.hpp: the kernel files, embedded by gpu/embed.cmake.
#pragma once

#include <span>
#include <string_view>

namespace qrtool {

struct KernelSource {
  std::string_view name;  // "gpu/reflectors/small/small.cl"
  std::string_view text;  // with its includes expanded
};

std::span<const KernelSource> kernel_sources();

}  // namespace qrtool
