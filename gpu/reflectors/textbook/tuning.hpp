// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `textbook` (textbook.cl) that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

namespace qrtool::tuning {

/// Largest number of columns: each work-item has one column, and n^4 operations are needed.
inline constexpr int textbook_max_columns = 64;

}  // namespace qrtool::tuning
