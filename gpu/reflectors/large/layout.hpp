// SPDX-License-Identifier: Apache-2.0
// layout.hpp: the widths of the panels and blocks of `large`, and the sizes of its buffers. Only
// gpu includes it. All numbers are per matrix of the problem p, m x n with k = min(m, n).
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/model/gpu_variant.hpp"

namespace qrtool::large {

/// The type REAL in which `large` computes.
ElementType computes_in(const Problem& p);
bool is_double(const Problem& p);
/// The number of passes by Gram matrices that a panel may take.
int gram_passes(const Problem& p);
/// True if REAL is wider than the type of the input, so that the results are rounded.
bool rounds(const Problem& p);

/// Columns per panel.
index_t panel_width(const Problem& p);
/// Columns per block, a multiple of the panel's.
index_t block_width(const Problem& p);
/// Columns per panel and per block on a device with little local memory. No buffer needs more room
/// with them.
struct Widths {
  index_t panel, block;
};
Widths lean_widths(const Problem& p);

/// True if wide products may use prepared operands, packed or transposed. This is so in float32, if
/// panels are wide enough to fill the tiles. In strict arithmetic the blocks must be long too:
/// 2048 x 2048 took 7.9 ms with prepared operands and 5.8 ms without.
bool may_prepare(const Problem& p);

/// True if T'Z is a wide product in float64, with T of a block in a form of its own.
bool multiplies_by_t(const Problem& p);

enum class WorkPlace { own, r, q, v };

/// The buffer in which V\R is computed: an output of the right type and size, else a buffer of its
/// own. Mode raw uses V; the others prefer R to Q.
WorkPlace work_place(const Problem& p);
/// The distance between rows of that buffer, in entries.
index_t work_columns(const Problem& p);

/// Columns of the buffer with the reflectors of a block, a multiple of 4.
index_t v_columns(const Problem& p);
/// The largest number of columns of Z, a multiple of 4.
index_t z_columns(const Problem& p);
/// Rows per slab of the Gram matrix of a panel with `rows` rows.
index_t gram_slab_rows(const Problem& p, index_t rows);
/// The number of REAL entries of the buffer z. It holds all slabs of Z, and before them the sums of
/// a panel's Gram matrix.
index_t z_entries(const Problem& p);

/// The work buffers. v holds the reflectors of a block and later T'Z, which has the buffer tz in
/// float64; wide_q holds Q in a wider
/// type; squares holds the triangles of a panel. The head of large.cl has the shapes.
enum WorkBuffer {
  work,
  codes,
  signs,
  taus,
  x,
  v,
  z,
  wide_q,
  squares,
  done,
  packed_v,
  packed_t,
  tz
};
/// Bytes of each work buffer per matrix, in the order of WorkBuffer.
std::vector<std::size_t> workspace(const Problem& p);

}  // namespace qrtool::large
