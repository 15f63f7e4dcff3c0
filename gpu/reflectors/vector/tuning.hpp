// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `vector` (vector.cl) that could be chosen differently. PoCL 3.1, two
// cores with AVX-512, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// Bytes of a vector, whose entries belong to different matrices. 32 .. 64: OpenCL C has no wider
/// vectors for float64.
inline constexpr std::int64_t vector_bytes = 64;
/// Largest number of rows and of columns. Larger packs are much larger than the caches, and the
/// plain sums of 32 rows may have an error above the bar.
inline constexpr std::int64_t vector_max_rows = 1024, vector_max_columns = 128;
/// Number of work-groups, each with a slot, that process one pack after another. 1 .. 1024: more
/// than there are cores.
inline constexpr std::int64_t vector_groups = 64;

}  // namespace qrtool::tuning
