// SPDX-License-Identifier: Apache-2.0
// passes.hpp: the launches of a pass over matrices in float64, X'X = L L' and X L'^-1, which
// gram_twice.cl and further_passes.cl have in common.
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// Row-major matrices of a batch, or of slots.
struct Rows {
  Buffer buffer;
  RowsShape shape;
};

/// The layout of a slot (slot_twice.clh), with a place for X where `has_rows`. The pass is 0, and
/// no guard lets a matrix end early.
TwiceShape twice_shape(const Problem& problem, bool has_rows);

/// The defines of the kernels, the local memory of the largest group and its work-items. Complex
/// matrices are taken in their real form everywhere else.
Params twice_params(const Problem& problem, const Limits& limits);
std::size_t twice_local_bytes(const Problem& problem);
inline constexpr int twice_group_size = 256;

/// The steps of a pass over `count` matrices, one slot each.
class TwicePasses {
 public:
  /// All arguments must outlive this object.
  TwicePasses(const Problem& problem, const Params& params, const Buffer& slots, Launcher& launch,
              index_t count);

  /// G = X'X, and in later passes than the first ||G - I||. sum_squares adds what sum_slab adds in
  /// the same order: which of them is faster may follow from the number of matrices.
  void sum(const TwiceShape& twice, const Rows& x) const;
  /// G = L L', square by square, for the matrices whose plan says so.
  void factor(const TwiceShape& twice) const;
  /// q := x L'^-1. x and q may be the same.
  void divide(const TwiceShape& twice, const Rows& x, const Rows& q) const;
  /// R := L' in the first pass, and R := L' R in later ones. r: n x n.
  void form_r(const TwiceShape& twice, const Rows& r) const;

  const FactorShape& shape() const { return shape_; }
  int group_size() const { return group_size_; }

 private:
  void update(const TwiceShape& twice, const Rows& x, const Rows& q, index_t from, index_t to,
              index_t end) const;

  const Problem& problem_;
  const Buffer& slots_;
  Launcher& launch_;
  FactorShape shape_;
  index_t count_;
  bool is_complex_;
  index_t squares_, strips_, big_strips_;  // of a matrix
  int group_size_, square_group_size_, big_group_size_;
};

}  // namespace qrtool
