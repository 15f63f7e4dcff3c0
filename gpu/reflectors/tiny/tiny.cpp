// SPDX-License-Identifier: Apache-2.0
// tiny.cpp: the host half of tiny.cl: each matrix in the registers of one work-item (LAPACK geqr2,
// org2r).
#include "gpu/reflectors/tiny/tiny.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/tiny/tuning.hpp"

namespace qrtool {
namespace {

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows); }
std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

/// Bytes of local memory per group: a matrix for each work-item (LD).
std::size_t local_bytes(const Problem& p, const Limits&) {
  return size_of(p.type) * static_cast<std::size_t>(tuning::tiny_group * (p.m * p.n | 1));
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  if (p.mode != Mode::reduced && p.mode != Mode::r) return {false, "takes modes reduced and r"};
  const index_t most = tuning::tiny_entries;
  if (p.m < 1 || p.n < 1 || p.m > tuning::tiny_rows || p.n > most || p.m * p.n > most) {
    return {false, "takes 1 to " + std::to_string(tuning::tiny_rows) + " rows and at most " +
                       std::to_string(most) + " entries"};
  }
  const std::string needs = group_objection(tuning::tiny_group, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  return {true, "the registers of one work-item hold a matrix"};
}

Params tune(const Problem& p, const Limits&) {
  return {{"ROWS", static_cast<int>(p.m)},
          {"COLUMNS", static_cast<int>(p.n)},
          {"GROUP", tuning::tiny_group},
          {"WANT_Q", p.wants_q()}};
}

std::vector<std::size_t> workspace(const Problem&) { return {}; }

void enqueue(const FactorJob& job, Launcher& launch) {
  launch("factor_tiny", ceil_divide(job.count, tuning::tiny_group), tuning::tiny_group, job.a,
         job.q, job.r, job.magnitudes, factor_shape(job.problem, job.count));
}

}  // namespace

GpuVariant tiny_variant() {
  return {.plan = {.name = "opencl/tiny",
                   .summary = "a matrix in the registers of one work-item",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<tiny_variant>,
                   .arithmetic = arithmetic,
                   .reflectors = tune},
          .file = "gpu/reflectors/tiny/tiny.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .local_bytes = local_bytes};
}

}  // namespace qrtool
