// SPDX-License-Identifier: Apache-2.0
// small.cpp: the whole matrix in the registers of a few lanes (LAPACK geqr2, org2r).
// Device half: kernels/small.cl.
#include <algorithm>
#include <bit>

#include "gpu/host_check.hpp"
#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows); }
std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

/// A tile of the small family that a matrix fits in.
struct Tile {
  int rows_per_lane, columns_per_lane, lanes_across, row_splits;
  int lanes() const { return lanes_across * row_splits; }
  int columns() const { return columns_per_lane * lanes_across; }
  int rows() const { return rows_per_lane * row_splits; }
};

int round_up(index_t x) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::max<index_t>(x, 4))));
}

Tile choose_tile(const Problem& p) {
  const int columns = round_up(std::max(p.n, p.q_cols())), rows = round_up(p.m);
  const int budget =
      tuning::small_tile_bytes / static_cast<int>(size_of(computes_in(p)));  // elements
  Tile tile{};
  tile.columns_per_lane = columns < tuning::small_wide_columns ? tuning::small_columns_per_lane : 2;
  tile.lanes_across = columns / tile.columns_per_lane;
  tile.rows_per_lane = std::min(rows, budget / tile.columns_per_lane);
  tile.row_splits = rows / tile.rows_per_lane;
  return tile;
}

/// Bytes of local memory for one matrix; the last term is what lanes without sub-groups need.
int local_bytes(const Problem& p, const Tile& tile) {
  const int reals = 2 * (tile.rows() + 4) + 2 * tile.columns() + tile.lanes();
  return reals * static_cast<int>(size_of(computes_in(p))) +
         tile.columns() * static_cast<int>(sizeof(int));
}

int matrices_per_group(const Problem& p, const Tile& tile, const Limits& limits) {
  const int by_lanes = std::min(tuning::small_group_size, limits.max_group) / tile.lanes();
  const int by_local = tuning::small_local_bytes / local_bytes(p, tile);
  // NVIDIA's sub-groups must be full: a group has 32 lanes at least.
  const int least = std::max(1, 32 / tile.lanes());
  const int most = std::max({1, least, std::min(by_lanes, by_local)});
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(most)));
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits);
  if (!objection.empty()) return {false, objection};
  if (std::max(p.n, p.q_cols()) > tuning::small_max_columns || p.m > tuning::small_max_rows) {
    return {false, "takes at most " + std::to_string(tuning::small_max_rows) + " rows and " +
                       std::to_string(tuning::small_max_columns) + " columns of A and Q"};
  }
  const Tile tile = choose_tile(p);
  const int group = matrices_per_group(p, tile, limits) * tile.lanes();
  const auto local = static_cast<std::size_t>(matrices_per_group(p, tile, limits)) *
                     static_cast<std::size_t>(local_bytes(p, tile));
  if (tile.row_splits > tuning::small_max_row_splits ||
      group > std::min(tuning::small_max_group_size, limits.max_group) ||
      local > limits.local_bytes) {
    return {false, "needs " + std::to_string(group) + " work-items and " + std::to_string(local) +
                       " bytes of local memory per group"};
  }
  return {true, "a matrix fits the registers of " + std::to_string(tile.lanes()) + " work-items"};
}

Params tune(const Problem& p, const Limits& limits) {
  const Tile tile = choose_tile(p);
  return {{"TILE_ROWS", tile.rows_per_lane},
          {"LANE_COLUMNS", tile.columns_per_lane},
          {"LANES_ACROSS", tile.lanes_across},
          {"ROW_SPLITS", tile.row_splits},
          {"MATRICES", matrices_per_group(p, tile, limits)},
          {"COLUMN_STEP", std::min(tile.lanes_across, tuning::small_column_step)},
          {"WANT_Q", p.wants_q()},
          {"RAW", p.mode == Mode::raw}};
}

std::vector<std::size_t> workspace(const Problem&) { return {}; }

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const int matrices = job.params.at("MATRICES");
  const int group = matrices * job.params.at("LANES_ACROSS") * job.params.at("ROW_SPLITS");
  const bool is_raw = p.mode == Mode::raw;
  launch("factor_small", ceil_divide(job.count, matrices), group, job.a, is_raw ? job.tau : job.q,
         is_raw ? job.v : job.r, job.magnitudes, factor_shape(p, job.count));
}

std::size_t device_bytes(const Problem& p) { return device_workspace_bytes(small_variant(), p); }

}  // namespace

GpuVariant small_variant() {
  return {{"opencl/small", "to 128 columns and 512 rows; each matrix in registers", fits, tune,
           host_check_bytes, device_bytes, arithmetic},
          "small.cl",
          workspace,
          enqueue,
          computes_in};
}

}  // namespace qrtool
