// SPDX-License-Identifier: Apache-2.0
// textbook.cpp: the host half of textbook.cl: small square matrices, one work-item per column,
// every reflector as a full matrix. It is a baseline for measurements; the plan never chooses it.
#include "gpu/reflectors/textbook/textbook.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/textbook/tuning.hpp"

namespace qrtool {
namespace {

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows_large); }
std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

/// Bytes of local memory per group: a sign per column, and the code of the matrix.
std::size_t local_bytes(const Problem& p, const Limits&) {
  return size_of(computes_in(p)) * static_cast<std::size_t>(p.n) + sizeof(int);
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  if (p.m != p.n) return {false, "takes square matrices"};
  if (p.n > tuning::textbook_max_columns || p.n > limits.max_group) {
    return {false, "takes at most " + std::to_string(tuning::textbook_max_columns) + " columns"};
  }
  if (p.mode == Mode::raw) return {false, "keeps no reflectors"};
  const std::string needs = group_objection(static_cast<int>(p.n), local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  return {true, "square, at most " + std::to_string(tuning::textbook_max_columns) + " columns"};
}

Params tune(const Problem& p, const Limits&) { return {{"SIZE", static_cast<int>(p.n)}}; }

/// Bytes per matrix: R and Q, each twice because a product cannot overwrite its factor, and P.
std::vector<std::size_t> workspace(const Problem& p) {
  const std::size_t matrix = size_of(computes_in(p)) * static_cast<std::size_t>(p.m * p.n);
  return {5 * matrix};
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Buffer& products = job.work.front();
  launch("factor", job.count, job.params.at("SIZE"), job.a, products, job.q, job.r, job.magnitudes,
         factor_shape(job.problem, job.count));
}

}  // namespace

GpuVariant textbook_variant() {
  return {.plan = {.name = "opencl/textbook",
                   .summary = "small square; every reflector formed and multiplied: a baseline",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<textbook_variant>,
                   .arithmetic = arithmetic,
                   .only_when_forced = true},
          .file = "gpu/reflectors/textbook/textbook.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .local_bytes = local_bytes};
}

}  // namespace qrtool
