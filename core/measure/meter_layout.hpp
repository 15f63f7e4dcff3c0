// SPDX-License-Identifier: Apache-2.0
// meter_layout.hpp: how ErrorMeter cuts a matrix into tasks, and the memory that it takes. Private
// to core/measure.
#pragma once

#include <algorithm>

#include "core/batch.hpp"
#include "core/machine/host.hpp"
#include "core/measure/strips.hpp"

namespace qrtool::meter {

using strips::ceiling, strips::strip_size_of;
using strips::unit, strips::width;

/// Each call brings a multiple of this many rows.
inline constexpr index_t call_rows = strips::tile_rows;
/// The rows that are packed before their products are formed. More rows read and write Q'Q less
/// often.
inline constexpr index_t slab_rows = 2 * call_rows;
/// The number of rows that are packed in a task.
inline constexpr index_t pack_rows = 32;
/// The most strips of columns in a task of Q'Q, and in a task of A - QR. In A - QR, 256 rows of 8
/// strips take a quarter of a second-level cache of 2 MiB. Q and R come from the next cache; half
/// the rows or strips would need them twice as often.
inline constexpr index_t most_group_strips = 4, most_tile_strips = 8;
/// From this number of strips on there are enough tasks with 256 rows of A - QR; with fewer, a task
/// has 128.
inline constexpr index_t many_strips = 32;

/// The sizes of a meter's memory. Sizes of strips count doubles.
struct Layout {
  Layout(index_t m, index_t n, index_t q_cols, index_t all_r_rows, int most_threads)
      : keeps_a(q_cols == 0 && m < n),
        x_columns(q_cols > 0 ? q_cols : n),
        x_strips(ceiling(x_columns, width)),
        n_strips(ceiling(n, width)),
        group_strips(std::clamp<index_t>(x_strips / 8, 1, most_group_strips)),
        x_groups(ceiling(x_strips, group_strips)),
        tile_rows(n_strips < many_strips ? 128 : 256),
        tile_strips(std::clamp<index_t>(n_strips / 8, 1, most_tile_strips)),
        n_groups(ceiling(n_strips, tile_strips)),
        rows(keeps_a ? m : std::min(m, x_strips > 1 ? slab_rows : call_rows)),
        x_strip_size(strip_size_of(rows)),
        r_rows(all_r_rows),
        r_strip_size(strip_size_of(r_rows)),
        a_strip_size(q_cols > 0 ? strip_size_of(std::min(rows, tile_rows)) : 0),
        squares(keeps_a ? 0 : x_strips * (x_strips + 1) / 2),
        packs(ceiling(std::max(rows, all_r_rows), pack_rows)),
        threads(static_cast<int>(std::min<index_t>(std::min(most_threads, machine_cores()),
                                                   std::max<index_t>(1, tiles())))) {}

  index_t group_pairs() const { return x_groups * (x_groups + 1) / 2; }
  /// A single square has no more rows than X has columns.
  index_t gram_size() const {
    return squares * std::min(width, ceiling(x_columns, unit) * unit) * width;
  }
  index_t tile_size() const { return tile_strips * a_strip_size; }
  /// Returns how many tiles A - QR has in a slab.
  index_t tiles() const { return ceiling(rows, tile_rows) * n_groups; }
  /// Returns how many numbers the tasks of a slab leave: two for each tile, and one for every other
  /// task.
  index_t slots() const { return std::max({2 * tiles(), packs, group_pairs()}); }
  index_t size() const {
    return 2 * gram_size() + x_strips * x_strip_size + n_strips * r_strip_size +
           threads * tile_size() + slots();
  }

  /// Whether A'A is larger than A and R together. Its squares are then computed one after another
  /// from all rows of A, and none is stored.
  bool keeps_a;
  index_t x_columns, x_strips, n_strips;     // X is Q, or A where there is no Q
  index_t group_strips, x_groups;            // the strips that one task of X'X takes
  index_t tile_rows, tile_strips, n_groups;  // what one task of A - QR takes of each
  index_t rows;                              // of X that are packed at a time
  index_t x_strip_size, r_rows, r_strip_size, a_strip_size;
  index_t squares;  // 32 x 32, of X'X
  index_t packs;    // the most tasks of packing
  int threads;
};

/// Returns the columns and rows of a meter in real numbers.
inline Layout layout_of(index_t m, index_t n, index_t q_cols, index_t r_rows, int most_threads,
                        bool is_complex) {
  const index_t parts = is_complex ? 2 : 1;
  return {m, parts * n, parts * q_cols, q_cols > 0 ? parts * r_rows : r_rows, most_threads};
}

}  // namespace qrtool::meter
