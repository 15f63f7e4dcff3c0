// SPDX-License-Identifier: Apache-2.0
// vector.cpp: the host half of vector.cl: batches on CPU devices, a matrix per SIMD lane, without
// barriers (LAPACK geqr2, org2r).
#include <fmt/format.h>

#include "gpu/check/device_check.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/vector/tuning.hpp"
#include "gpu/reflectors/vector/vector.hpp"

namespace qrtool {
namespace {

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows); }
std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

index_t lanes(const Problem& p) {
  return tuning::vector_bytes / static_cast<index_t>(size_of(computes_in(p)));
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  if (!limits.is_cpu) return {false, "for CPU devices"};
  if (p.mode == Mode::raw) return {false, "keeps no reflectors"};
  if (p.k() > tuning::vector_max_columns || p.m > tuning::vector_max_rows ||
      p.n > tuning::vector_max_rows) {
    return {false, fmt::format("takes at most {} rows and {} columns", tuning::vector_max_rows,
                               tuning::vector_max_columns)};
  }
  return {true, fmt::format("{} matrices per work-item, no barriers", lanes(p))};
}

Params tune(const Problem& p, const Limits&) { return {{"LANES", static_cast<int>(lanes(p))}}; }

std::size_t local_bytes(const Problem&, const Limits&) { return 0; }

std::vector<std::size_t> workspace(const Problem&) { return {}; }

/// The bytes of a slot and the number of slots. A slot holds A and Q in whole panels of four
/// columns, tau and the codes.
Slots slots(const Problem& p) {
  const auto padded = [](index_t columns) { return ceil_divide(columns, 4) * 4; };
  const index_t vectors = p.m * (padded(p.n) + padded(p.q_cols())) + p.k() + p.n;
  return {static_cast<std::size_t>(vectors * tuning::vector_bytes), tuning::vector_groups};
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const index_t groups = std::min(ceil_divide(job.count, lanes(p)), tuning::vector_groups);
  launch("factor_vector", groups, 1, job.a, job.q, job.r, job.magnitudes, job.slots,
         factor_shape(p, job.count), static_cast<int>(groups));
}

}  // namespace

GpuVariant vector_variant() {
  return {.plan = {.name = "opencl/vector",
                   .summary = "batches on CPU devices; a matrix per SIMD lane, no barriers",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<vector_variant>,
                   .arithmetic = arithmetic,
                   .reflectors = tune},
          .file = "gpu/reflectors/vector/vector.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .local_bytes = local_bytes,
          .checks_by_vectors = true};
}

}  // namespace qrtool
