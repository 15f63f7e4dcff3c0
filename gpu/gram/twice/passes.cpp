// SPDX-License-Identifier: Apache-2.0
// passes.cpp: the launches of a pass over matrices in float64 (gram_twice.cl, further_passes.cl).
#include "gpu/gram/twice/passes.hpp"

#include <algorithm>

#include "gpu/gram/steps/sizes.clh"
#include "gpu/gram/twice/tuning.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {
namespace {

constexpr int warps = 4;
constexpr int square_warps = 8;
constexpr index_t tile = 64;             // TILE
constexpr index_t side = 128;            // SIDE
constexpr index_t states = 16;           // STATES
constexpr std::size_t block_room = 288;  // BLOCK_ROOM

/// The number of squares whose rows are updated by one long product: the one that leaves the fewest
/// groups idle. The device runs `groups` of them at a time.
index_t outer_squares(index_t strips, index_t groups) {
  index_t best = 3;
  const auto waves_per_square = [&](index_t squares) {
    return static_cast<double>(ceil_divide(strips * squares, groups)) /
           static_cast<double>(squares);
  };
  for (index_t squares = best + 1; squares <= 8; ++squares) {
    if (waves_per_square(squares) < 0.97 * waves_per_square(best)) best = squares;
  }
  return best;
}

/// The part of the time in which a device that runs `at_once` groups at a time has all of them.
double use_of(index_t groups, index_t at_once) {
  return static_cast<double>(groups) / static_cast<double>(ceil_divide(groups, at_once) * at_once);
}

/// Whether a product takes less time in `big` groups of sixteen warps than in `small` ones, which
/// leave out what is past column n. full: the part of the big products that is within n.
bool pays_big(index_t big, index_t small, index_t small_at_once, double full) {
  return big >= tuning::gram_twice_least_big_groups &&
         tuning::gram_twice_big_gain * full * use_of(big, tuning::gram_twice_big_groups) >
             use_of(small, small_at_once);
}

}  // namespace

/// Of divide_rows, whose two stages have a block more than there are block columns, of
/// factor_squares, or of sum_squares, which has five stages and the sums of a diagonal.
std::size_t twice_local_bytes(const Problem& p) {
  const auto blocks = static_cast<std::size_t>(std::min(ceil_divide(p.n, 16), side / 16));
  const std::size_t divide_rows = 2 * (blocks + 1) * block_room;
  const std::size_t factor_squares = 16 * block_room + block_room + 16;    // TWICE_ROOM
  const std::size_t big = p.n > side ? 5 * 2 * 4 * (side + 4) + side : 0;  // BIG_ENTRIES, parts
  return sizeof(double) * std::max({divide_rows, factor_squares, big});
}

Params twice_params(const Problem& p, const Limits& limits) {
  const index_t columns = real_columns(p);
  Params params{{"MMA", limits.float64_products},
                {"VECTOR", std::min(aligned_entries(columns), 2)},
                {"COLUMNS", static_cast<int>(std::min(columns, side + 1))}};
  if (is_complex(p.type)) params["ELEMENT_PARTS"] = 2;
  if (limits.float64_products) params[std::string(most_registers)] = tuning::gram_twice_registers;
  return params;
}

TwiceShape twice_shape(const Problem& p, bool has_rows) {
  TwiceShape twice{};
  const index_t tiles = ceil_divide(p.n, tile), squares = ceil_divide(p.n, side);
  const index_t pairs = tiles * (tiles + 1) / 2, entries = tile * tile;
  const index_t groups = ceil_divide(tuning::gram_twice_groups, pairs);
  const index_t slabs = std::clamp(groups, ceil_divide(p.m, tuning::gram_twice_most_slab_rows),
                                   ceil_divide(p.m, tuning::gram_twice_least_slab_rows));
  twice.tiles = static_cast<int>(tiles);
  twice.slab_rows = static_cast<int>(ceil_divide(ceil_divide(p.m, slabs), 8) * 8);
  twice.slabs = static_cast<int>(ceil_divide(p.m, twice.slab_rows));
  index_t end = 0;
  const auto take = [&](index_t count) { return take_place(end, count); };
  take(2 * squares * (squares - 1) * entries);
  twice.diagonals = take(squares * std::min<index_t>(tiles * tiles, 4) * entries);
  twice.inverses = take(squares * 8 * 256);
  twice.norms = take(tiles * tile);
  twice.departures = take(pairs);
  twice.largest = take(twice.slabs * tiles);
  twice.state = take(states);
  twice.pivot_errors = take(squares * 8);
  twice.slab_sums = twice.slabs > 1 ? take(twice.slabs * pairs * entries) : end;
  twice.rows = has_rows ? take(p.m * p.n) : end;
  twice.slot = end;
  return twice;
}

TwicePasses::TwicePasses(const Problem& problem, const Params& params, const Buffer& slots,
                         Launcher& launch, index_t count)
    : problem_(problem),
      slots_(slots),
      launch_(launch),
      shape_(factor_shape(problem, count)),
      count_(count),
      is_complex_(params.contains("ELEMENT_PARTS")),
      squares_(ceil_divide(problem.n, side)),
      strips_(ceil_divide(problem.m, tile)),
      big_strips_(ceil_divide(problem.m, side)),
      group_size_(warps * warp_lanes(params)),
      square_group_size_(square_warps * warp_lanes(params)),
      big_group_size_(BIG_WARPS * warp_lanes(params)) {}

void TwicePasses::sum(const TwiceShape& twice, const Rows& x) const {
  const index_t tiles = twice.tiles, pairs = tiles * (tiles + 1) / 2;
  const index_t square_pairs = count_ * twice.slabs * squares_ * (squares_ + 1) / 2;
  const auto part = static_cast<double>(problem_.n) / static_cast<double>(squares_ * side);
  const bool is_big = squares_ > 1 && pays_big(square_pairs, count_ * twice.slabs * pairs,
                                               4 * tuning::gram_twice_big_groups, part * part);
  launch_(is_big ? "sum_squares" : "sum_slab", is_big ? square_pairs : count_ * twice.slabs * pairs,
          is_big ? big_group_size_ : group_size_, x.buffer, x.shape, slots_, shape_, twice);
  if (twice.slabs > 1) {
    const index_t sums = tile * tile / SLAB_GROUP * (twice.slabs < SUM_PARTS ? 1 : SUM_PARTS);
    launch_("add_slabs", count_ * pairs * sums, SLAB_GROUP, slots_, twice);
  }
  if (is_complex_) launch_("fold_gram", count_ * pairs, SLAB_GROUP, slots_, twice);
  launch_("settle_gram", count_ * pairs, SLAB_GROUP, slots_, shape_, twice);
}

void TwicePasses::factor(const TwiceShape& twice) const {
  const index_t tiles = twice.tiles;
  for (index_t b = 0; b < squares_; ++b) {
    // Row pair d has d - b + 1 pairs of tiles in each of its two rows.
    const index_t below = squares_ - 1 - b, targets = b > 0 ? below * (below + 3) : 0;
    launch_("factor_squares", count_ * (1 + targets), square_group_size_, slots_, twice,
            static_cast<int>(problem_.n), static_cast<int>(count_), static_cast<int>(b),
            static_cast<int>(targets));
    const index_t others = std::max<index_t>(tiles - 2 * (b + 1), 0);
    launch_("divide_panel", count_ * others, group_size_, slots_, twice, static_cast<int>(b));
  }
}

void TwicePasses::divide(const TwiceShape& twice, const Rows& x, const Rows& q) const {
  // What is added up together decides the bits, and must not follow from the number of matrices.
  const bool is_big = big_strips_ * 3 >= tuning::gram_twice_least_big_groups;
  const index_t groups = tuning::gram_twice_big_groups;
  const index_t together =
      is_big ? outer_squares(big_strips_, groups) : outer_squares(strips_, 2 * groups);
  for (index_t outer = 0; outer < squares_; outer += together) {
    const index_t end = std::min(outer + together, squares_);
    if (outer > 0) update(twice, x, q, 0, outer, end);
    for (index_t b = outer; b < end; ++b) {
      const Rows& from = b == 0 ? x : q;
      launch_("divide_rows", count_ * strips_, group_size_, from.buffer, from.shape, q.buffer,
              q.shape, slots_, shape_, twice, static_cast<int>(b));
      if (b + 1 < end) update(twice, x, q, b, b + 1, end);
    }
  }
}

/// Subtracts the squares from .. to - 1 from the squares to .. end - 1, which x holds if they
/// were not touched before. Both kernels give the same bits.
void TwicePasses::update(const TwiceShape& twice, const Rows& x, const Rows& q, index_t from,
                         index_t to, index_t end) const {
  const Rows& old = from == 0 ? x : q;
  const index_t big = count_ * big_strips_ * (end - to);
  const index_t small = count_ * strips_ * (end - to);
  const auto part = static_cast<double>(std::min(problem_.n, end * side) - to * side) /
                    static_cast<double>((end - to) * side);
  const bool is_big = pays_big(big, small, 2 * tuning::gram_twice_big_groups, part);
  launch_(is_big ? "update_big_rows" : "update_rows", is_big ? big : small,
          is_big ? big_group_size_ : square_group_size_, old.buffer, old.shape, q.buffer, q.shape,
          slots_, shape_, twice, static_cast<int>(from), static_cast<int>(to),
          static_cast<int>(end - to));
}

void TwicePasses::form_r(const TwiceShape& twice, const Rows& r) const {
  const index_t tiles = twice.tiles, below = tiles * (tiles - 1) / 2;
  const auto step = [&](const char* kernel, index_t groups) {
    launch_(kernel, count_ * groups, group_size_, r.buffer, r.shape, slots_, shape_, twice);
  };
  if (twice.pass == 0) {
    step("store_first_factor", below + tiles);
  } else {
    step("multiply_factors", below);
    step("turn_factor", below + tiles);
  }
}

}  // namespace qrtool
