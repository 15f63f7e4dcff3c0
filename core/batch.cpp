// SPDX-License-Identifier: Apache-2.0
// batch.cpp: allocates host memory for batches.
#include "core/batch.hpp"

#include <new>

namespace qrtool {

HostMemory allocate_host(std::size_t bytes) {
  constexpr std::align_val_t cache_line{64};
  auto* memory = static_cast<std::byte*>(::operator new(bytes + 1, cache_line));
  return {memory, [](std::byte* p) { ::operator delete(p, cache_line); }};
}

}  // namespace qrtool
