// SPDX-License-Identifier: Apache-2.0
// after_gram.cpp: small, blocked, tall, large or complex.
#include "gpu/reflectors/after_gram.hpp"

#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/blocked/blocked.hpp"
#include "gpu/reflectors/complex/complex.hpp"
#include "gpu/reflectors/large/large.hpp"
#include "gpu/reflectors/small/small.hpp"
#include "gpu/reflectors/tall/tall.hpp"

namespace qrtool {
namespace {

/// Whether the registers of a group hold a matrix.
bool is_small(const Problem& p) {
  const index_t most_rows =
      p.n <= tuning::small_max_columns ? tuning::gram_small_rows : tuning::small_flagged_columns;
  return p.n <= tuning::small_flagged_columns && p.m <= most_rows &&
         static_cast<index_t>(p.input_bytes()) <= tuning::small_matrix_bytes;
}

}  // namespace

GpuVariant reflectors_after_gram(const Problem& p) {
  if (is_complex(p.type)) return complex_variant();
  if (is_small(p)) return flagged_small_variant();
  const auto entry_bytes = static_cast<index_t>(size_of(p.type));
  if (p.m <= tuning::blocked_max_row_bytes / entry_bytes) return blocked_variant();
  return p.mode != Mode::raw && p.n <= tall_most_columns(p) ? tall_variant() : large_variant();
}

}  // namespace qrtool
