// SPDX-License-Identifier: Apache-2.0
// layout.hpp: widths of panels and blocks of `large`, and where its data lies. Private to
// gpu.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/gpu_variant.hpp"

namespace qrtool::large {

ElementType computes_in(const Problem& p);
bool is_double(const Problem& p);
/// Whether it computes in a wider type than that of the input.
bool rounds(const Problem& p);

/// Columns per panel, and per block of panels.
index_t panel_width(const Problem& p);
index_t block_width(const Problem& p);

/// Whether wide products may take operands prepared for them, packed or transposed: in float32,
/// where panels fill their tiles, strict where blocks are long: 2048 x 2048 took 7.9 ms so and 5.8
/// without.
bool may_prepare(const Problem& p);

enum class WorkPlace { own, r, q, v };

/// V\R lies in an output where one has its type and size: R, else Q.
WorkPlace work_place(const Problem& p);
index_t work_columns(const Problem& p);

/// Columns of the buffer of a block's reflectors, and of a block's Z at the most.
index_t v_columns(const Problem& p);
index_t z_columns(const Problem& p);
/// Rows of a slab of a Gram matrix of `rows`.
index_t gram_slab_rows(const Problem& p, index_t rows);
/// REAL of Z in all its slabs, in whose place a panel's sums lie before.
index_t z_entries(const Problem& p);

/// work, codes, signs, taus, X, v and T'Z in turns, Z, Q in a wider type, squares, done, packed v,
/// packed T.
enum Buffer { work, codes, signs, taus, x, v, z, wide_q, squares, done, packed_v, packed_t };
/// Bytes of each, per matrix.
std::vector<std::size_t> workspace(const Problem& p);

}  // namespace qrtool::large
