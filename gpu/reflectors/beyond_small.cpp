// SPDX-License-Identifier: Apache-2.0
// beyond_small.cpp: blocked, tall or large.
#include "gpu/reflectors/beyond_small.hpp"

#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/blocked/blocked.hpp"
#include "gpu/reflectors/large/large.hpp"
#include "gpu/reflectors/tall/tall.hpp"

namespace qrtool {

GpuVariant reflectors_beyond_small(const Problem& p) {
  const auto entry_bytes = static_cast<index_t>(size_of(p.type));
  if (p.m <= tuning::blocked_max_row_bytes / entry_bytes) return blocked_variant();
  return p.mode != Mode::raw && p.n <= tall_most_columns(p) ? tall_variant() : large_variant();
}

}  // namespace qrtool
