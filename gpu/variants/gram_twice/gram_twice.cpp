// SPDX-License-Identifier: Apache-2.0
// gram_twice.cpp: float64 by Gram matrices in two passes (CholeskyQR2), any number of columns, with
// a guard; what it stops goes to Householder reflectors. Device half: gram_twice.cl.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/ratios.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/host/program_cache.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/registry.hpp"

namespace qrtool {
namespace {

constexpr int warps = 4;
constexpr int square_warps = 8;
constexpr int wide_warps = 16;           // WIDE_WARPS
constexpr index_t tile = 64;             // TILE
constexpr index_t side = 128;            // SIDE
constexpr int sum_group_size = 256;      // SLAB_GROUP
constexpr index_t sum_parts = 8;         // SUM_PARTS
constexpr std::size_t block_room = 288;  // BLOCK_ROOM

constexpr std::array<std::string_view, 4> heavy_kernels{"judge_first_pass", "divide_rows",
                                                        "factor_squares", "divide_panel"};

ElementType computes_in(const Problem&) { return ElementType::float64; }
std::string arithmetic(const Problem&) { return "float64"; }

/// Householder's variant for the matrices that the guard stops.
GpuVariant again(const Problem& p) {
  if (p.n <= tuning::small_max_columns && p.m < tuning::blocked_min_rows)
    return flagged_small_variant();
  return reflectors_beyond_small(p);
}

/// Of divide_rows, whose two stages have a block more than there are block columns, of
/// factor_squares, or of sum_squares, which has five stages and the sums of a diagonal.
std::size_t local_bytes(const Problem& p, const Limits&) {
  const auto blocks = static_cast<std::size_t>(std::min(ceil_divide(p.n, 16), side / 16));
  const std::size_t divide_rows = 2 * (blocks + 1) * block_room;
  const std::size_t factor_squares = 16 * block_room + block_room + 16;     // TWICE_ROOM
  const std::size_t wide = p.n > side ? 5 * 2 * 4 * (side + 4) + side : 0;  // WIDE_ENTRIES, parts
  return sizeof(double) * std::max({divide_rows, factor_squares, wide});
}

Fit fits(const Problem& p, const Limits& limits) {
  if (p.type != ElementType::float64) return {false, "takes float64 only"};
  for (const std::string& objection : {gram_objection(p, limits), general_objection(p, limits)}) {
    if (!objection.empty()) return {false, objection};
  }
  if (p.n > tuning::gram_twice_max_columns) {
    return {false, "takes at most " + std::to_string(tuning::gram_twice_max_columns) + " columns"};
  }
  const std::string needs = group_objection(32 * square_warps, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const Fit fallback = again(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, "products in float64, at full speed here"};
}

Params tune(const Problem& p, const Limits& limits) {
  Params params{{"MMA", limits.float64_products},
                {"VECTOR", std::min(aligned_entries(p.n), 2)},
                {"COLUMNS", static_cast<int>(std::min(p.n, side + 1))}};
  if (limits.float64_products) params[std::string(most_registers)] = tuning::gram_twice_registers;
  return params;
}

std::vector<std::size_t> workspace(const Problem& p) { return flagged_workspace(again(p), p); }

/// The largest ||D^-1 A'A D^-1 - I||_F^2 with which Q needs one pass (gpu/common/departure.clh),
/// for sums of `terms` products. 0: not even a Gaussian matrix of this shape is expected to be as
/// close.
double most_departure_in_one_pass(const Problem& p, index_t terms) {
  const auto growth = [](index_t steps) {
    return std::max(8.0, tuning::gram_guard_per_root * std::sqrt(static_cast<double>(steps)));
  };
  const double bar = standard_bars(p.m, p.n, double_precision, {}).orthogonality / 0x1p-53;
  const double most = tuning::gram_twice_one_pass_share * bar, h = growth(terms + p.n);
  const double root = std::sqrt(static_cast<double>(p.n)), rows = 2 * growth(p.n) * root;
  const double d = (most - (h + 32) * root - rows) / (most + h + rows);
  const double expected = root * root / std::sqrt(static_cast<double>(p.m));
  return d > expected ? d * d : 0;
}

/// The first Q is in Q, or in a buffer of `again`, or else in the slot.
bool has_place_of_first_q(const Problem& p) {
  return p.wants_q() || borrowed_buffer(again(p), p) > 0;
}

/// The layout of a slot (slot_twice.clh).
TwiceShape slot_shape(const Problem& p) {
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
  const auto take = [&](index_t count) {
    const index_t first = end;
    end += ceil_divide(count, 16) * 16;  // whole lines of 128 bytes
    return first;
  };
  take(2 * squares * (squares - 1) * entries);
  twice.diagonals = take(squares * std::min<index_t>(tiles * tiles, 4) * entries);
  twice.inverses = take(squares * 8 * 256);
  twice.norms = take(tiles * tile);
  twice.departures = take(pairs);
  twice.largest = take(twice.slabs * tiles);
  twice.state = take(2);
  twice.pivot_errors = take(squares * 8);
  twice.slab_sums = twice.slabs > 1 ? take(twice.slabs * pairs * entries) : end;
  twice.rows = has_place_of_first_q(p) ? end : take(p.m * p.n);
  twice.slot = end;
  const index_t terms = twice.slab_rows + twice.slabs;
  if (p.wants_q()) {
    twice.most_departure = most_departure_in_one_pass(p, terms);
  } else {
    twice.most_in_one = most_in_one_pass(p, terms);
  }
  return twice;
}

Slots slots(const Problem& p) {
  const std::size_t bytes = static_cast<std::size_t>(slot_shape(p).slot) * sizeof(double);
  const std::size_t first_q = has_place_of_first_q(p) ? 0 : p.input_bytes();
  const auto most = static_cast<index_t>(tuning::gram_twice_bytes / (bytes - first_q));
  return {bytes, std::max<index_t>(1, most)};
}

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

/// Whether a product takes less time in `wide` groups of sixteen warps than in `narrow` ones, which
/// leave out what is past column n. full: the part of the wide products that is within n.
bool pays_wide(index_t wide, index_t narrow, index_t narrow_at_once, double full) {
  return wide >= tuning::gram_twice_least_wide_groups &&
         tuning::gram_twice_wide_gain * full * use_of(wide, tuning::gram_twice_wide_groups) >
             use_of(narrow, narrow_at_once);
}

/// The rows of a batch, or of slots.
struct Rows {
  cl::Buffer buffer;
  RowsShape shape;
};

/// Matrices first .. first + count - 1, one slot each.
class Wave {
 public:
  Wave(const FactorJob& job, Launcher& launch, index_t first, index_t count)
      : job_(job),
        launch_(launch),
        shape_(factor_shape(job.problem, job.count)),
        twice_(slot_shape(job.problem)),
        first_(first),
        count_(count),
        squares_(ceil_divide(job.problem.n, side)),
        strips_(ceil_divide(job.problem.m, tile)),
        wide_strips_(ceil_divide(job.problem.m, side)),
        group_size_(warps * warp_lanes(job.params)),
        square_group_size_(square_warps * warp_lanes(job.params)),
        wide_group_size_(wide_warps * warp_lanes(job.params)) {
    if (job.params.contains(unguarded)) {
      for (double* most : {&twice_.most_in_one, &twice_.most_departure}) {
        if (*most > 0) *most = std::numeric_limits<double>::infinity();
      }
    }
  }

  void run() {
    const Problem& p = job_.problem;
    const Rows a = rows_of_batch(job_.a), q = first_q();
    form_factor(a);
    if (twice_.most_in_one > 0 || twice_.most_departure > 0) {
      launch_("judge_first_pass", count_, group_size_, job_.slots, shape_, twice_);
    }
    divide(a, q);
    const index_t below = index_t{twice_.tiles} * (twice_.tiles - 1) / 2;
    form_r("store_first_factor", below + twice_.tiles);
    twice_.pass = 1;
    form_factor(q);
    if (p.wants_q()) divide(q, q);
    form_r("multiply_factors", below);
    form_r("turn_factor", below + twice_.tiles);
    launch_("finish_twice", count_, group_size_, job_.q, job_.r, job_.magnitudes, job_.work.front(),
            job_.slots, shape_, twice_, static_cast<cl_int>(first_));
  }

 private:
  Rows rows_of_batch(const cl::Buffer& buffer) const {
    const index_t entries = job_.problem.m * job_.problem.n;
    return {buffer, {first_ * entries, entries}};
  }
  Rows first_q() const {
    const Problem& p = job_.problem;
    if (p.wants_q()) return rows_of_batch(job_.q);
    const std::size_t borrowed = borrowed_buffer(again(p), p);
    if (borrowed > 0) return rows_of_batch(job_.work[borrowed]);
    return {job_.slots, {twice_.rows, twice_.slot}};
  }

  /// A step of R, with a group for each of `tiles` tiles of a matrix.
  void form_r(const char* kernel, index_t tiles) const {
    launch_(kernel, count_ * tiles, group_size_, job_.r, job_.slots, shape_, twice_,
            static_cast<cl_int>(first_));
  }

  /// G = X'X = L L'. sum_squares adds what sum_slab adds in the same order: which of them is faster
  /// may follow from the number of matrices.
  void form_factor(const Rows& x) {
    const index_t tiles = twice_.tiles, pairs = tiles * (tiles + 1) / 2;
    const index_t square_pairs = count_ * twice_.slabs * squares_ * (squares_ + 1) / 2;
    const auto part = static_cast<double>(job_.problem.n) / static_cast<double>(squares_ * side);
    const bool is_wide = squares_ > 1 && pays_wide(square_pairs, count_ * twice_.slabs * pairs,
                                                   4 * tuning::gram_twice_wide_groups, part * part);
    launch_(is_wide ? "sum_squares" : "sum_slab",
            is_wide ? square_pairs : count_ * twice_.slabs * pairs,
            is_wide ? wide_group_size_ : group_size_, x.buffer, x.shape, job_.slots, shape_,
            twice_);
    if (twice_.slabs > 1) {
      const index_t sums =
          tile * tile / sum_group_size * (twice_.slabs < sum_parts ? 1 : sum_parts);
      launch_("add_slabs", count_ * pairs * sums, sum_group_size, job_.slots, twice_);
    }
    launch_("settle_gram", count_ * pairs, sum_group_size, job_.slots, shape_, twice_);
    if (twice_.pass == 1) {
      launch_("begin_series", count_ * tiles, group_size_, job_.slots, shape_, twice_);
    }
    for (index_t b = 0; b < squares_; ++b) {
      // Row pair d has d - b + 1 pairs of tiles in each of its two rows.
      const index_t below = squares_ - 1 - b, targets = b > 0 ? below * (below + 3) : 0;
      launch_("factor_squares", count_ * (1 + targets), square_group_size_, job_.slots, twice_,
              static_cast<cl_int>(job_.problem.n), static_cast<cl_int>(count_),
              static_cast<cl_int>(b), static_cast<cl_int>(targets));
      const index_t others = std::max<index_t>(tiles - 2 * (b + 1), 0);
      launch_("divide_panel", count_ * others, group_size_, job_.slots, twice_,
              static_cast<cl_int>(b));
    }
  }

  /// q := x L'^-1. x and q may be the same.
  void divide(const Rows& x, const Rows& q) {
    // What is added up together decides the bits, and must not follow from the number of matrices.
    const bool is_wide = wide_strips_ * 3 >= tuning::gram_twice_least_wide_groups;
    const index_t groups = tuning::gram_twice_wide_groups;
    const index_t together =
        is_wide ? outer_squares(wide_strips_, groups) : outer_squares(strips_, 2 * groups);
    for (index_t outer = 0; outer < squares_; outer += together) {
      const index_t end = std::min(outer + together, squares_);
      if (outer > 0) update(x, q, 0, outer, end);
      for (index_t b = outer; b < end; ++b) {
        const Rows& from = b == 0 ? x : q;
        launch_("divide_rows", count_ * strips_, group_size_, from.buffer, from.shape, q.buffer,
                q.shape, job_.slots, shape_, twice_, static_cast<cl_int>(b));
        if (b + 1 < end) update(x, q, b, b + 1, end);
      }
    }
  }

  /// Subtracts the squares from .. to - 1 from the squares to .. end - 1, which x holds if they
  /// were not touched before. Both kernels give the same bits.
  void update(const Rows& x, const Rows& q, index_t from, index_t to, index_t end) {
    const Rows& old = from == 0 ? x : q;
    const index_t wide = count_ * wide_strips_ * (end - to);
    const index_t narrow = count_ * strips_ * (end - to);
    const auto part = static_cast<double>(std::min(job_.problem.n, end * side) - to * side) /
                      static_cast<double>((end - to) * side);
    const bool is_wide = pays_wide(wide, narrow, 2 * tuning::gram_twice_wide_groups, part);
    launch_(is_wide ? "update_wide_rows" : "update_rows", is_wide ? wide : narrow,
            is_wide ? wide_group_size_ : square_group_size_, old.buffer, old.shape, q.buffer,
            q.shape, job_.slots, shape_, twice_, static_cast<cl_int>(from), static_cast<cl_int>(to),
            static_cast<cl_int>(end - to));
  }

  const FactorJob& job_;
  Launcher& launch_;
  FactorShape shape_;
  TwiceShape twice_;
  index_t first_, count_;
  index_t squares_, strips_, wide_strips_;  // of a matrix
  int group_size_, square_group_size_, wide_group_size_;
};

/// In waves of as many matrices as the buffer has slots.
void enqueue(const FactorJob& job, Launcher& launch) {
  const std::size_t bytes = job.slots.getInfo<CL_MEM_SIZE>();
  const auto most = static_cast<index_t>(bytes / slots(job.problem).bytes);
  for (index_t first = 0; first < job.count; first += most) {
    Wave(job, launch, first, std::min(most, job.count - first)).run();
  }
}

std::size_t device_bytes(const Problem& p) {
  return device_workspace_bytes(gram_twice_variant(), p);
}

}  // namespace

GpuVariant gram_twice_variant() {
  return {.plan = {.name = "opencl/gram_twice",
                   .summary = "float64, by Gram matrices in two passes; guarded",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes,
                   .arithmetic = arithmetic},
          .file = "gpu/variants/gram_twice/gram_twice.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .again = again,
          .routes = flagged_routes,
          .host_decides = true,
          .local_bytes = local_bytes,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
