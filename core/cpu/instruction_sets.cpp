// SPDX-License-Identifier: Apache-2.0
// instruction_sets.cpp: asks the processor for its instruction sets.
#include "core/cpu/instruction_sets.hpp"

namespace qrtool {

std::size_t unsupported_x86_sets() {
#ifdef QRTOOL_X86_KERNELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return 0;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return 1;
#endif
  return 2;
}

}  // namespace qrtool
