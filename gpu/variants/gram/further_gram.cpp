// SPDX-License-Identifier: Apache-2.0
// further_gram.cpp: what a guard has refused, to 80 columns, a matrix in the registers of a warp.
// Device half: further_gram.cl.
#include <algorithm>
#include <array>

#include "gpu/model/tuning.hpp"
#include "gpu/registry.hpp"
#include "gpu/variants/gram/tile_params.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 1> heavy_kernels{"factor_refused"};

/// The same in float64, which is computed.
Problem in_float64(Problem p) {
  p.type = ElementType::float64;
  return p;
}

Params tune(const Problem& p, const Limits& limits) {
  Params params = gram_params(in_float64(p), limits);
  params.erase("ONE_PASS");
  return params;
}

/// X and R, in whole lines of 128 bytes.
Slots slots(const Problem& p) {
  const index_t entries = ceil_divide(p.m * p.n, 16) * 16 + ceil_divide(p.n * p.n, 16) * 16;
  return {static_cast<std::size_t>(entries) * sizeof(double), tuning::further_gram_groups};
}

bool fits(const Problem& p, const Limits& limits) {
  constexpr int most_lanes = 32;
  // And the exponents of the columns.
  const std::size_t local =
      gram_local_bytes(in_float64(p), limits) + sizeof(int) * static_cast<std::size_t>(p.n + 15);
  return p.n <= tuning::gram_twice_columns && p.m <= tuning::further_gram_rows &&
         gram_objection(p, limits).empty() && group_objection(most_lanes, local, limits).empty();
}

void enqueue(const FurtherJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const Slots memory = slots(p);
  FurtherShape further = further_shape(p);
  further.slot = static_cast<index_t>(memory.bytes / sizeof(double));
  further.factor = ceil_divide(p.m * p.n, 16) * 16;
  const auto room = static_cast<index_t>(job.slots.getInfo<CL_MEM_SIZE>() / memory.bytes);
  const index_t groups = std::min({room, memory.most, job.count});
  launch("factor_refused", groups, warp_lanes(job.params), job.a, job.q, job.r, job.list,
         job.routes, job.slots, factor_shape(p, job.count), further, static_cast<cl_int>(groups));
}

}  // namespace

FurtherRoute further_gram() {
  return {.file = "gpu/variants/gram/further_gram.cl",
          .fits = fits,
          .tune = tune,
          .slots = slots,
          .enqueue = enqueue,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
