// SPDX-License-Identifier: Apache-2.0
// blocked.cpp: the host half of blocked.cl: strips of 32 columns in registers; panels, T, the
// update of the other strips, then Q from the last panel to the first (LAPACK geqrf, orgqr).
#include <algorithm>
#include <array>

#include "gpu/check/device_check.hpp"
#include "gpu/common/tile_lanes.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/blocked/blocked.hpp"
#include "gpu/reflectors/blocked/tuning.hpp"

namespace qrtool {
namespace {

constexpr int panel_width = 32;

constexpr std::array<std::string_view, 3> heavy_kernels{"factor_step", "factor_first",
                                                        "form_q_step"};

ElementType computes_in(const Problem& p) { return p.type; }
std::string arithmetic(const Problem& p) { return std::string(name_of(p.type)); }

/// Rows per lane, rounded up to a multiple of four.
int lane_rows(const Problem& p) {
  return static_cast<int>(ceil_divide(p.m, index_t{4} * panel_width)) * 4;
}

/// True if the kernels use fewer registers and less local memory (LEAN in blocked.cl).
bool is_lean(const Problem& p) {
  return p.type == ElementType::float64 || lane_rows(p) <= tuning::blocked_lean_lane_rows;
}

/// True if rows past the end of a strip are skipped (LIVE_ROWS in blocked.cl). Short tiles of lean
/// kernels have no registers for it.
bool skips_rows(const Problem& p) {
  return !is_lean(p) || lane_rows(p) > tuning::blocked_short_lane_rows;
}

/// Columns per lane. A CPU has the wide lanes (8 columns) too: with groups of 256 work-items, PoCL
/// 3.1 computes wrong results here.
int lane_columns(const Problem& p, const Limits& limits) {
  const bool is_short = lane_rows(p) <= tuning::blocked_short_lane_rows;
  return is_short || limits.is_cpu ? tuning::blocked_short_lane_columns
                                   : tuning::blocked_lane_columns;
}

int group_size(int lane_columns) { return panel_width / lane_columns * panel_width; }

LaneTile strip_tile(const Problem& p, const Limits& limits) {
  const int columns = lane_columns(p, limits);
  return {lane_rows(p), columns, panel_width / columns, panel_width};
}

/// Bytes of local memory of factor_step with `stage` reflectors at a time. One array holds either
/// the reflectors, the vectors that lanes show or T. The others hold V'C, T V'C and T (V'C alone if
/// lean), three numbers and a code per column, and the sums that lanes without shuffles exchange.
std::size_t local_bytes_with(const Problem& p, const Limits& limits, int stage) {
  const LaneTile tile = strip_tile(p, limits);
  const int pad = stage < 8 ? 0 : panel_width / stage;
  const int reflectors =
      std::max({stage * (tile.rows() + pad), tile.shown_entries(), panel_width * panel_width});
  const int exchanged = tile.has_shuffles(limits) ? 0 : 4 * tile.columns_per_lane * tile.lanes();
  const int squares = is_lean(p) ? 1 : 3;
  const int reals =
      reflectors + squares * panel_width * panel_width + 3 * panel_width + 2 + exchanged;
  return static_cast<std::size_t>(reals) * size_of(p.type) + panel_width * sizeof(int);
}

/// Reflectors in local memory at a time: the largest power of two that fits the device and the
/// measured limit in tuning.hpp.
int stage(const Problem& p, const Limits& limits) {
  const int row_bytes = panel_width * lane_rows(p) * static_cast<int>(size_of(p.type));
  int reflectors = panel_width;
  while (reflectors > 4 && (reflectors * row_bytes > tuning::blocked_stage_bytes ||
                            local_bytes_with(p, limits, reflectors) > limits.local_bytes)) {
    reflectors /= 2;
  }
  return reflectors;
}

std::size_t local_bytes(const Problem& p, const Limits& limits) {
  return local_bytes_with(p, limits, stage(p, limits));
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  const index_t most_rows = tuning::blocked_max_row_bytes / static_cast<index_t>(size_of(p.type));
  if (p.m < tuning::blocked_min_rows || p.m > most_rows) {
    return {false, "takes " + std::to_string(tuning::blocked_min_rows) + " to " +
                       std::to_string(most_rows) + " rows"};
  }
  if (p.n > tuning::blocked_max_columns) {
    return {false, "takes at most " + std::to_string(tuning::blocked_max_columns) + " columns"};
  }
  const int group = group_size(lane_columns(p, limits));
  const std::string needs = group_objection(group, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  return {true, "strips of columns fit the registers of " + std::to_string(group) + " work-items"};
}

/// True if V\R is computed in an output buffer: the buffer of V or the buffer of Q.
bool works_in_output(const Problem& p) {
  return p.mode == Mode::raw || (p.wants_q() && p.n <= p.m);
}

/// The distance between rows, in entries, of the buffer that holds V\R.
index_t work_columns(const Problem& p) {
  return p.mode != Mode::raw && works_in_output(p) ? p.q_cols() : p.n;
}

Params tune(const Problem& p, const Limits& limits) {
  const index_t ld = work_columns(p);
  const index_t all = p.n | ld | p.q_cols() | p.k();
  const int alignment = aligned_entries(all);
  const LaneTile tile = strip_tile(p, limits);
  return {{"LANE_ROWS", tile.rows_per_lane},
          {"LANE_COLUMNS", tile.columns_per_lane},
          {"LANES_ACROSS", tile.lanes_across},
          {"STAGE", stage(p, limits)},
          {"LEAN", is_lean(p)},
          {"LIVE_ROWS", skips_rows(p)},
          {"ALIGNMENT", alignment}};
}

/// The work buffers. `own` holds V\R if no output does.
enum WorkBuffer { own, codes, tops, t, buffer_count };

/// Bytes per matrix of the buffers, in the order of WorkBuffer.
std::vector<std::size_t> workspace(const Problem& p) {
  const std::size_t real = size_of(p.type);
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n);
  const auto k = static_cast<std::size_t>(p.k());
  const auto panels = static_cast<std::size_t>(ceil_divide(p.k(), panel_width));
  std::vector<std::size_t> bytes(buffer_count);
  bytes[own] = works_in_output(p) ? 0 : real * m * n;
  bytes[codes] = sizeof(int) * n;
  bytes[tops] = real * k;
  bytes[t] = real * panels * panel_width * panel_width;
  return bytes;
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  const int group = group_size(job.params.at("LANE_COLUMNS"));
  const int panels = static_cast<int>(ceil_divide(p.k(), panel_width));
  const bool is_raw = p.mode == Mode::raw;
  const std::vector<Buffer>& w = job.work;
  const Buffer& work = !works_in_output(p) ? w[own] : is_raw ? job.v : job.q;
  const int ld = static_cast<int>(work_columns(p));

  launch("factor_first", job.count, group, job.a, work, w[codes], w[tops], w[t], shape,
         StripShape{.index = 0, .ld = ld});
  const index_t strips = ceil_divide(p.n, panel_width);
  for (int i = 1; i <= panels && i < strips; ++i) {
    launch("factor_step", job.count * (strips - i), group, job.a, work, w[codes], w[tops], w[t],
           shape, StripShape{.index = i, .ld = ld});
  }
  if (is_raw) {
    launch("finish_raw", job.count * ceil_divide(p.m, 32), group, work, w[codes], w[tops], w[t],
           job.tau, job.magnitudes, shape);
    return;
  }
  launch("finish_strips", job.count * ceil_divide(p.r_rows(), 32), group, work, w[codes], job.r,
         job.magnitudes, shape, StripShape{.index = 0, .ld = ld});
  if (!p.wants_q()) return;
  const index_t q_strips = ceil_divide(p.q_cols(), panel_width);
  for (int i = panels - 1; i >= -1; --i) {
    const index_t touched = i < 0 ? 1 : q_strips - i - 1;
    if (touched == 0) continue;
    launch("form_q_step", job.count * touched, group, work, w[codes], w[tops], w[t], job.q, shape,
           StripShape{.index = i, .ld = ld});
  }
}

}  // namespace

GpuVariant blocked_variant() {
  return {.plan = {.name = "opencl/blocked",
                   .summary = "to 1024 rows; strips of columns in registers, compact WY",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<blocked_variant>,
                   .arithmetic = arithmetic,
                   .reflectors = tune},
          .file = "gpu/reflectors/blocked/blocked.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .takes_flags = true,
          .local_bytes = local_bytes,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
