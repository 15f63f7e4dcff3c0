// SPDX-License-Identifier: Apache-2.0
// routines.hpp: what the engines of this folder share: the routine of the kernels for a type, and
// whether an entry is missing. Private to core/solve.
#pragma once

#include <cmath>

#include "core/batch.hpp"

namespace qrtool {

/// Returns the routine for T. Kernels: systems::Kernels or shared::Kernels.
template <class T, class Kernels>
const auto& routine_of(const Kernels& kernels) {
  if constexpr (sizeof(T) == 8) {
    return kernels.in_double;
  } else {
    return kernels.in_float;
  }
}

/// Whether one of x[0], x[step], .. is NaN.
template <class T>
bool has_nan(const T* x, index_t count, index_t step) {
  for (index_t i = 0; i < count; ++i)
    if (std::isnan(x[i * step])) return true;
  return false;
}

}  // namespace qrtool
