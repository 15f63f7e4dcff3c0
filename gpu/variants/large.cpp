// SPDX-License-Identifier: Apache-2.0
// large.cpp: any shape; panel, T, trailing strips, Q backward (LAPACK geqrf, orgqr).
// Device half: kernels/large.cl.
#include <algorithm>

#include "gpu/host_check.hpp"
#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows_large); }
std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

int panel_width(const Problem& p) {
  if (p.m < tuning::large_narrow_rows) return tuning::large_narrow_panel_width;
  return p.m >= tuning::large_wide_rows ? tuning::large_wide_panel_width
                                        : tuning::large_panel_width;
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits);
  if (!objection.empty()) return {false, objection};
  if (limits.max_group < tuning::large_group_size) {
    return {false, "needs work-groups of " + std::to_string(tuning::large_group_size)};
  }
  return {true, "takes every shape"};
}

Params tune(const Problem& p, const Limits&) {
  return {{"PANEL_WIDTH", panel_width(p)},
          {"GROUP_SIZE", tuning::large_group_size},
          {"STRIP_COLUMNS", tuning::large_strip_columns},
          {"TILE_ROWS", tuning::large_tile_rows}};
}

/// work, exponents, taus, T, and Q where it is computed in a wider type.
std::vector<std::size_t> workspace(const Problem& p) {
  const std::size_t real = size_of(computes_in(p));
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n);
  const auto k = static_cast<std::size_t>(p.k()), width = static_cast<std::size_t>(panel_width(p));
  const auto q_cols = static_cast<std::size_t>(p.q_cols());
  const std::size_t panels = (k + width - 1) / width;
  const bool rounds_q = computes_in(p) != p.type;
  return {real * m * n, sizeof(int) * n, real * k, real * panels * width * width,
          rounds_q ? real * m * q_cols : 0};
}

/// Q := H_1 .. H_k I, panels last to first, in launches of bounded length.
void enqueue_form_q(const FactorJob& job, const FactorShape& shape, const cl::Buffer& q,
                    Launcher& launch) {
  const Problem& p = job.problem;
  const int width = job.params.at("PANEL_WIDTH"), group = job.params.at("GROUP_SIZE");
  const index_t strips = ceil_divide(p.q_cols(), job.params.at("STRIP_COLUMNS"));
  const int panels = static_cast<int>(ceil_divide(p.k(), width));
  const double operations = 4.0 * static_cast<double>(job.count) * static_cast<double>(p.m) *
                            static_cast<double>(p.q_cols()) * width;
  const int step = static_cast<int>(
      std::clamp(tuning::large_launch_operations / operations, 1.0, double(panels)));
  for (int last = panels - 1; last >= 0; last -= step) {
    const PanelShape range{0, 0, std::max(0, last - step + 1), last};
    launch("form_q", job.count * strips, group, job.work[0], job.work[3], job.work[1], q, shape,
           range);
  }
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  const int width = job.params.at("PANEL_WIDTH"), group = job.params.at("GROUP_SIZE");
  const int strip = job.params.at("STRIP_COLUMNS");
  const cl::Buffer &work = job.work[0], &exponents = job.work[1], &taus = job.work[2],
                   &t = job.work[3], &wide_q = job.work[4];

  launch("scale_columns", job.count * ceil_divide(p.n, 32), group, job.a, work, exponents, shape);
  for (int j = 0; j < shape.k; j += width) {
    const PanelShape panel{j, std::min(width, shape.k - j), 0, 0};
    launch("factor_panel", job.count, group, work, taus, t, shape, panel);
    launch("update_trailing", job.count * ceil_divide(p.n - j - panel.width, strip), group, work, t,
           shape, panel);
  }
  if (p.mode == Mode::raw) {
    launch("store_v", job.count * ceil_divide(p.m, 32), group, work, exponents, job.v,
           job.magnitudes, shape);
    launch("store_tau", ceil_divide(job.count * p.k(), group), group, taus, job.v, job.magnitudes,
           job.tau, shape);
    return;
  }
  launch("store_r", job.count * ceil_divide(p.r_rows(), 32), group, work, exponents, job.r,
         job.magnitudes, shape);
  if (!p.wants_q()) return;
  const bool rounds_q = computes_in(p) != p.type;
  enqueue_form_q(job, shape, rounds_q ? wide_q : job.q, launch);
  if (rounds_q) {
    launch("store_q", ceil_divide(job.count * p.m * p.q_cols(), group), group, wide_q, job.q,
           shape);
  }
}

std::size_t device_bytes(const Problem& p) { return device_workspace_bytes(large_variant(), p); }

}  // namespace

GpuVariant large_variant() {
  return {{"opencl/large", "any shape; panels through memory, compact WY, Q backward", fits, tune,
           host_check_bytes, device_bytes, arithmetic},
          "large.cl",
          workspace,
          enqueue,
          computes_in};
}

}  // namespace qrtool
