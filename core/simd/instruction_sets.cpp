// SPDX-License-Identifier: Apache-2.0
// instruction_sets.cpp: asks the processor for its instruction sets.
#include "core/simd/instruction_sets.hpp"

#ifdef QRTOOL_TILE_KERNELS
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>

namespace qrtool {
namespace {

std::size_t supported_sets() {
#ifdef QRTOOL_X86_KERNELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return 3;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return 2;
#endif
  return 1;
}

#ifdef QRTOOL_TILE_KERNELS
/// Asks Linux for permission to use the AMX tile registers, and returns whether it is granted.
/// Since 5.16 Linux saves these registers only for processes that ask.
bool may_use_tiles() {
  constexpr unsigned leaf = 7, tiles_with_bfloat16 = 1u << 22 | 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(leaf, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & tiles_with_bfloat16) != tiles_with_bfloat16) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif

}  // namespace

std::size_t unsupported_sets(std::size_t compiled) {
  return compiled - std::min(compiled, supported_sets());
}

bool has_tile_registers() {
#ifdef QRTOOL_TILE_KERNELS
  static const bool may = supported_sets() == 3 && may_use_tiles();
  return may;
#else
  return false;
#endif
}

}  // namespace qrtool
