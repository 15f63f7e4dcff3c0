// SPDX-License-Identifier: Apache-2.0
// gram_passes.cpp: complex matrices by Gram matrices in as many passes as their condition needs,
// any number of columns. What the passes do not finish, and what is not finite, goes to Householder
// reflectors. Device half: further_passes.cl, which also takes what other variants refuse.
#include <algorithm>

#include "gpu/check/device_check.hpp"
#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/gram/twice/passes.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/complex/complex.hpp"

namespace qrtool {
namespace {

ElementType computes_in(const Problem&) { return ElementType::float64; }
std::string arithmetic(const Problem&) { return "complex128"; }
GpuVariant again(const Problem&) { return complex_variant(); }

const FurtherRoute& passes() {
  static const FurtherRoute route = further_passes();
  return route;
}

Fit fits(const Problem& p, const Limits& limits) {
  for (const std::string& objection : {gram_objection(p, limits), general_objection(p, limits)}) {
    if (!objection.empty()) return {false, objection};
  }
  if (!passes().fits(p, limits)) return {false, "needs more memory than the device has"};
  const Fit fallback = again(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, "products in float64, at full speed here"};
}

Params tune(const Problem& p, const Limits& limits) { return passes().tune(p, limits); }

/// Those of `again`, and the list of the matrices.
std::vector<std::size_t> workspace(const Problem& p) {
  std::vector<std::size_t> bytes = flagged_workspace(again(p), p);
  bytes.push_back(sizeof(int));
  return bytes;
}

Slots slots(const Problem& p) {
  const std::size_t bytes = passes().slots(p).bytes;
  return {bytes, std::max<index_t>(1, static_cast<index_t>(tuning::further_most_bytes / bytes))};
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Buffer &routes = job.work.front(), &list = job.work.back();
  launch("list_all", job.count, further_group_size, job.a, list, routes, job.magnitudes,
         factor_shape(real_form(job.problem), job.count));
  passes().enqueue(
      {job.problem, job.params, job.count, list, job.a, job.q, job.r, routes, job.slots},
      {0, further_pass_counts(job.problem).most}, launch);
}

std::size_t device_bytes(const Problem& p) {
  return device_workspace_bytes(gram_passes_variant(), p);
}

std::size_t local_bytes(const Problem& p, const Limits&) { return twice_local_bytes(real_form(p)); }

}  // namespace

GpuVariant gram_passes_variant() {
  return {.plan = {.name = "opencl/gram_passes",
                   .summary = "complex matrices, by Gram matrices in some passes",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes,
                   .arithmetic = arithmetic,
                   .numbers = Numbers::complex},
          .file = passes().file,
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .again = again,
          .routes = flagged_routes,
          .local_bytes = local_bytes,
          .heavy_kernels = passes().heavy_kernels};
}

}  // namespace qrtool
