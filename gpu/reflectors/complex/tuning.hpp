// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `complex` (complex.cl) that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// The largest complex matrices: what one group may take. They were chosen without a GPU.
inline constexpr std::int64_t complex_most_columns = 512;
inline constexpr std::int64_t complex_most_entries = 1 << 20;
/// The same for what a guard refuses: the group has 12 bytes of local memory for each column, and
/// counts entries as an int. It takes seconds for the largest, which a CPU would take, too.
inline constexpr std::int64_t complex_most_refused_columns = 2048;
inline constexpr std::int64_t complex_most_refused_entries = 1 << 30;
/// Entries of 16 bytes that are kept in local memory, of which devices have 48 KiB for a group.
inline constexpr std::int64_t complex_local_entries = 1024;
/// A group has a work-item for so many entries of the matrix.
inline constexpr std::int64_t complex_entries_of_item = 16;
inline constexpr std::uint64_t complex_least_group = 32, complex_most_group = 256;
/// The rows of a work-item where a column has enough of them, and the work-items for a column.
inline constexpr std::int64_t complex_rows_of_item = 64;
inline constexpr std::uint64_t complex_most_team = 32;

}  // namespace qrtool::tuning
