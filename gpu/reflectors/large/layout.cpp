// SPDX-License-Identifier: Apache-2.0
// layout.cpp: the widths of the panels and blocks of `large`, and the sizes of its buffers.
#include "gpu/reflectors/large/layout.hpp"

#include <algorithm>

#include "gpu/model/tuning.hpp"
#include "gpu/products/product.hpp"
#include "gpu/reflectors/large/tuning.hpp"

namespace qrtool::large {
namespace {

/// Squares of the triangles of a panel.
index_t squares_of_panel(const Problem& p) { return gram_passes(p) == 1 ? 5 : 7; }

bool has_long_blocks(const Problem& p) { return p.k() >= tuning::large_long_block_columns; }

/// The largest number of columns of a block. In float64 its reflectors take at most
/// 1 / large_v_share of the size of A, Q and R.
index_t most_block_width(const Problem& p) {
  const index_t most = has_long_blocks(p) ? tuning::large_long_block : tuning::large_block;
  if (!is_double(p)) return most;
  const index_t entries = 2 * p.m * p.n + p.n * p.n;
  return std::min(most, entries / (tuning::large_v_share * std::max<index_t>(p.m, 1)));
}

/// The number of REAL entries that all slabs of Z, or of a panel's Gram matrix, may use together.
index_t slab_entries(const Problem& p) {
  return p.m * p.n / (may_prepare(p) ? tuning::large_packed_z_share : tuning::large_z_share);
}

/// The number of REAL entries of a panel's Gram matrix, which is in float64.
index_t gram_square(const Problem& p) {
  return panel_width(p) * panel_width(p) * (is_double(p) ? 1 : 2);
}

/// The largest number of slabs of a Gram matrix.
index_t most_gram_slabs(const Problem& p) {
  const index_t square = gram_square(p);
  return std::clamp<index_t>(slab_entries(p) / square, tuning::large_least_gram_slabs,
                             tuning::large_gram_slabs);
}

/// The number of REAL entries for the sums of a panel's Gram matrix. They use the buffer of Z,
/// which is computed only after them.
index_t gram_entries(const Problem& p) {
  const index_t slabs = std::min(most_gram_slabs(p), ceil_divide(p.m, tuning::large_gram_rows));
  return slabs * gram_square(p);
}

/// Bytes of a packed operand of rows x cols; 0 if the products take no prepared operands.
std::size_t packed_bytes(const Problem& p, index_t rows, index_t cols) {
  if (!may_prepare(p)) return 0;
  return static_cast<std::size_t>(packed_blocks(rows) * packed_blocks(cols) * packed_block_bytes);
}

/// Bytes of T'Z, which is a product of its own if multiplies_by_t.
std::size_t tz_bytes(const Problem& p) {
  if (!multiplies_by_t(p)) return 0;
  return static_cast<std::size_t>(block_width(p) * z_columns(p)) * sizeof(double);
}
/// Bytes of T of a block for that product.
std::size_t block_t_bytes(const Problem& p) {
  if (!multiplies_by_t(p)) return 0;
  const index_t side = packed_blocks(block_width(p)) * 16;
  return static_cast<std::size_t>(side * side) * sizeof(double);
}

}  // namespace

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows_large); }

bool is_double(const Problem& p) { return computes_in(p) == ElementType::float64; }

int gram_passes(const Problem& p) { return is_double(p) ? 2 : 1; }

bool rounds(const Problem& p) { return computes_in(p) != p.type; }

index_t panel_width(const Problem& p) {
  const bool is_narrow =
      p.k() < tuning::large_narrow_columns || most_block_width(p) < tuning::large_panel;
  return is_narrow ? tuning::large_narrow_panel : tuning::large_panel;
}

index_t block_width(const Problem& p) {
  const index_t panel = panel_width(p);
  const index_t most = std::max(panel, most_block_width(p) / panel * panel);
  return std::min(most, ceil_divide(p.k(), panel) * panel);
}

Widths lean_widths(const Problem& p) {
  const index_t panel = tuning::large_narrow_panel;
  return {panel, std::min<index_t>(block_width(p), 2 * panel)};
}

bool may_prepare(const Problem& p) {
  return !is_double(p) && panel_width(p) == tuning::large_panel &&
         (p.arithmetic != Arithmetic::strict || has_long_blocks(p));
}

bool multiplies_by_t(const Problem& p) { return is_double(p) && has_long_blocks(p); }

WorkPlace work_place(const Problem& p) {
  if (rounds(p)) return WorkPlace::own;
  if (p.mode == Mode::raw) return WorkPlace::v;
  if (p.r_rows() == p.m) return WorkPlace::r;
  return p.wants_q() && p.n <= p.m ? WorkPlace::q : WorkPlace::own;
}

index_t work_columns(const Problem& p) { return work_place(p) == WorkPlace::q ? p.q_cols() : p.n; }

index_t v_columns(const Problem& p) { return ceil_divide(std::min(block_width(p), p.k()), 4) * 4; }

index_t z_columns(const Problem& p) { return ceil_divide(std::max(p.n, p.q_cols()), 4) * 4; }

index_t gram_slab_rows(const Problem& p, index_t rows) {
  const index_t even = ceil_divide(ceil_divide(rows, most_gram_slabs(p)), 32) * 32;
  return std::max(tuning::large_gram_rows, even);
}

index_t z_entries(const Problem& p) {
  const index_t one = block_width(p) * z_columns(p);
  const index_t panels =
      panel_width(p) * block_width(p) *
      std::min(tuning::large_panel_slabs, ceil_divide(p.m, tuning::large_product_rows));
  const index_t slabs = std::clamp(p.m / tuning::large_slab_cost_depth * 4,
                                   tuning::large_least_z_slabs, tuning::large_most_z_slabs);
  const index_t entries =
      std::max({one, std::min(slab_entries(p), slabs * one), panels, gram_entries(p)});
  return ceil_divide(entries, 4) * 4;  // keeps Z of the next matrix aligned
}

std::vector<std::size_t> workspace(const Problem& p) {
  const std::size_t real = size_of(computes_in(p));
  const auto bytes = [](index_t entries, std::size_t size) {
    return static_cast<std::size_t>(entries) * size;
  };
  const index_t block = block_width(p), square = panel_width(p) * panel_width(p);
  return {bytes(work_place(p) == WorkPlace::own ? p.m * p.n : 0, real),
          bytes(p.n, sizeof(int)),
          bytes(p.k(), real),
          bytes(p.k(), real),
          bytes(ceil_divide(p.k(), block) * block * block, real),
          std::max(bytes(p.m * v_columns(p), real), packed_bytes(p, block, z_columns(p))),
          bytes(z_entries(p), real),
          bytes(rounds(p) ? p.m * p.q_cols() : 0, real),
          bytes(squares_of_panel(p) * square, sizeof(double)),
          sizeof(int),
          packed_bytes(p, p.m, block),
          std::max(packed_bytes(p, block, block), block_t_bytes(p)),
          tz_bytes(p)};
}

}  // namespace qrtool::large
