// SPDX-License-Identifier: Apache-2.0
// small.cpp: the host half of small.cl: a few lanes hold the whole matrix in their registers
// (LAPACK geqr2, org2r).
#include <algorithm>
#include <array>
#include <bit>

#include "gpu/check/device_check.hpp"
#include "gpu/common/tile_lanes.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/small/small.hpp"
#include "gpu/reflectors/small/tuning.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 1> heavy_kernels{"factor_small"};

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows); }
std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

int power_of_two(index_t x) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::max<index_t>(x, 1))));
}

LaneTile tile_with(const Problem& p, int lane_columns) {
  const index_t columns = std::max<index_t>({p.n, p.q_cols(), 1}), rows = std::max<index_t>(p.m, 1);
  const int budget =
      tuning::small_tile_bytes / static_cast<int>(size_of(computes_in(p)));  // elements
  const bool is_narrow = columns <= tuning::small_narrow_columns;
  const bool is_tall = columns <= 16 && rows > 16;
  const int narrow_columns =
      is_tall ? tuning::small_narrow_tall_lane_columns : tuning::small_narrow_lane_columns;
  LaneTile tile{};
  tile.lanes_across = is_narrow ? std::min(tuning::small_narrow_most_lanes_across,
                                           power_of_two(ceil_divide(columns, narrow_columns)))
                                : std::max(tuning::small_least_lanes_across,
                                           power_of_two(ceil_divide(columns, lane_columns)));
  const int most_rows = !is_narrow ? tuning::small_lane_rows
                        : rows <= tuning::small_narrow_lane_rows
                            ? tuning::small_narrow_few_lane_rows
                            : tuning::small_narrow_lane_rows;
  const int most_entries = is_narrow ? budget + budget / 8 : budget;
  while (true) {
    tile.columns_per_lane = static_cast<int>(ceil_divide(columns, tile.lanes_across));
    const int lane_rows = std::min(most_rows, std::max(4, budget / tile.columns_per_lane / 4 * 4));
    tile.row_splits = power_of_two(ceil_divide(rows, lane_rows));
    // Half the splits suffice if a lane can hold 4 more rows. This is cheaper than twice the lanes,
    // but a lane with all rows of its columns is slow (tuning.hpp).
    if (tile.row_splits > 2 && ceil_divide(rows, tile.row_splits / 2) <= lane_rows + 4 &&
        (lane_rows + 4) * tile.columns_per_lane <= most_entries) {
      tile.row_splits /= 2;
    }
    tile.rows_per_lane = static_cast<int>(ceil_divide(ceil_divide(rows, tile.row_splits), 4)) * 4;
    if (tile.row_splits <= tuning::small_max_row_splits || tile.columns_per_lane == 1) return tile;
    tile.lanes_across *= 2;
  }
}

LaneTile choose_tile(const Problem& p) {
  const LaneTile tile = tile_with(p, tuning::small_lane_columns);
  if (computes_in(p) == ElementType::float32) return tile;
  const LaneTile narrow = tile_with(p, tuning::small_double_lane_columns);
  return narrow.columns() <= tile.columns() ? narrow : tile;
}

/// The tile of a flagged matrix. Few matrices are flagged and all others wait for them, so each
/// gets more lanes than in a full batch.
LaneTile choose_flagged_tile(const Problem& p) {
  for (const int lane_columns : {2, 4}) {
    const LaneTile tile = tile_with(p, lane_columns);
    if (tile.lanes() <= tuning::small_flagged_lanes) return tile;
  }
  return choose_tile(p);
}

int matrices_per_group(const LaneTile& tile) {
  // Shuffles need full sub-groups on NVIDIA GPUs, so a group has at least 32 lanes.
  return std::max(1, tuning::small_group_size / tile.lanes());
}

/// Bytes of local memory per group. Each matrix needs the vectors that lanes show, two more
/// numbers, and three numbers and a code per column. Lanes without shuffles also exchange their
/// sums there. This is an upper bound: the compiler may drop arrays that a run without Q does not
/// use.
std::size_t local_bytes_of(const Problem& p, const LaneTile& tile, const Limits& limits) {
  const int matrices = matrices_per_group(tile);
  const int reals = matrices * (tile.shown_entries() + 3 * tile.columns() + 2) +
                    tile.exchanged_entries(limits, matrices);
  return static_cast<std::size_t>(reals) * size_of(computes_in(p)) +
         static_cast<std::size_t>(matrices * tile.columns()) * sizeof(int);
}
std::size_t local_bytes(const Problem& p, const Limits& limits) {
  return local_bytes_of(p, choose_tile(p), limits);
}

/// True if A, Q and R fill the tile, so that the kernel need not test each entry.
bool is_full(const Problem& p, const LaneTile& tile) {
  return p.m == tile.rows() && p.n == tile.columns() && p.m >= p.n &&
         (p.q_cols() == 0 || p.q_cols() == p.n) && p.n % tile.row_splits == 0;
}

Fit fits_to(index_t most_columns, const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  if (std::max(p.n, p.q_cols()) > most_columns || p.m > tuning::small_max_rows) {
    return {false, "takes at most " + std::to_string(tuning::small_max_rows) + " rows and " +
                       std::to_string(most_columns) + " columns of A and Q"};
  }
  const LaneTile tile = choose_tile(p);
  const int group = matrices_per_group(tile) * tile.lanes();
  const auto registers =
      static_cast<index_t>(size_of(computes_in(p))) * tile.rows() * tile.columns();
  if (registers > tuning::small_matrix_bytes) {
    return {false, "needs more than " + std::to_string(tuning::small_matrix_bytes) +
                       " bytes of registers per matrix"};
  }
  if (tile.row_splits > tuning::small_max_row_splits || group > tuning::small_max_group_size) {
    return {false, "needs " + std::to_string(group) + " work-items per group"};
  }
  const std::string needs = group_objection(group, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  return {true, "a matrix fits the registers of " + std::to_string(tile.lanes()) + " work-items"};
}

Fit fits(const Problem& p, const Limits& limits) {
  return fits_to(tuning::small_max_columns, p, limits);
}
Fit fits_flagged(const Problem& p, const Limits& limits) {
  return fits_to(tuning::small_flagged_columns, p, limits);
}

/// The number of columns that are processed with the same first row.
int column_step(const Problem& p, const LaneTile& tile) {
  const int columns = tile.columns();
  if (columns <= tuning::small_narrow_step_columns) return tuning::small_narrow_column_step;
  const bool is_double = computes_in(p) == ElementType::float64;
  return is_double && columns <= tuning::small_double_step_columns
             ? tuning::small_double_column_step
             : tuning::small_column_step;
}

Params params_of(const Problem& p, const LaneTile& tile) {
  return {{"LANE_ROWS", tile.rows_per_lane},
          {"LANE_COLUMNS", tile.columns_per_lane},
          {"LANES_ACROSS", tile.lanes_across},
          {"ROW_SPLITS", tile.row_splits},
          {"MATRICES", matrices_per_group(tile)},
          {"COLUMN_STEP", std::min(tile.lanes_across, column_step(p, tile))},
          {"FILLED", is_full(p, tile)},
          {"WANT_Q", p.wants_q()},
          {"RAW", p.mode == Mode::raw}};
}

Params tune(const Problem& p, const Limits&) { return params_of(p, choose_tile(p)); }

Params tune_flagged(const Problem& p, const Limits& limits) {
  Params params = params_of(p, limits.is_cpu ? choose_tile(p) : choose_flagged_tile(p));
  params["FLAGGED"] = limits.is_cpu ? 1 : tuning::small_flagged_share;
  return params;
}

std::vector<std::size_t> workspace(const Problem&) { return {}; }

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const int matrices = job.params.at("MATRICES");
  const auto flagged = job.params.find("FLAGGED");
  const index_t share = flagged == job.params.end() ? 1 : flagged->second;
  const int group = matrices * job.params.at("LANES_ACROSS") * job.params.at("ROW_SPLITS");
  const bool is_raw = p.mode == Mode::raw;
  launch("factor_small", ceil_divide(job.count, share * matrices), group, job.a,
         is_raw ? job.tau : job.q, is_raw ? job.v : job.r, job.magnitudes,
         factor_shape(p, job.count));
}

}  // namespace

GpuVariant small_variant() {
  return {.plan = {.name = "opencl/small",
                   .summary = "to 128 columns and 512 rows; each matrix in registers",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<small_variant>,
                   .arithmetic = arithmetic,
                   .reflectors = tune},
          .file = "gpu/reflectors/small/small.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .local_bytes = local_bytes,
          .heavy_kernels = heavy_kernels};
}

GpuVariant flagged_small_variant() {
  GpuVariant variant = small_variant();
  variant.plan.fits = fits_flagged;
  variant.plan.tune = tune_flagged;
  variant.takes_flags = true;
  return variant;
}

}  // namespace qrtool
