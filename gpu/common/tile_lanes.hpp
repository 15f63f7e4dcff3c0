// SPDX-License-Identifier: Apache-2.0
// tile_lanes.hpp: the local memory that a tile of tile_lanes.clh needs. Private to gpu.
#pragma once

#include "core/problem/problem.hpp"

namespace qrtool {

/// The lanes that hold one matrix or block. The members are the values of LANE_ROWS, LANE_COLUMNS,
/// LANES_ACROSS and ROW_SPLITS in tile_lanes.clh.
struct LaneTile {
  int rows_per_lane, columns_per_lane, lanes_across, row_splits;

  int lanes() const { return lanes_across * row_splits; }
  int columns() const { return columns_per_lane * lanes_across; }
  int rows() const { return rows_per_lane * row_splits; }

  /// Number of entries of the two vectors that lanes show to each other (SHOWN_STRIDE).
  int shown_entries() const {
    const bool shares_banks = row_splits > 1 && rows_per_lane % 8 == 0;
    const int shown = row_splits * (rows_per_lane + (shares_banks ? 4 : 0));
    return 2 * shown + ((4 * row_splits - 2 * shown) & 31);
  }
  /// Whether lanes that share a column sum by shuffles (SHUFFLES).
  bool has_shuffles(const Limits& limits) const {
    return limits.shuffle_lanes > 1 && row_splits <= limits.shuffle_lanes;
  }
  /// Number of entries that the lanes of `matrices` matrices exchange through local memory
  /// (SCRATCH). With shuffles none is used, but the array has one.
  int exchanged_entries(const Limits& limits, int matrices) const {
    if (has_shuffles(limits)) return 1;
    return row_splits == 1 ? 0 : (2 * columns_per_lane + 1) * lanes() * matrices;
  }
};

}  // namespace qrtool
