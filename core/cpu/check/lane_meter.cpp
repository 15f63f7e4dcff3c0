// SPDX-License-Identifier: Apache-2.0
// lane_meter.cpp: chooses the kernels for this processor, and finishes what they find.
#include "core/cpu/check/lane_meter.hpp"

#include <algorithm>
#include <array>

#include "core/measure/strips.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {
namespace {

using check_lanes::most_lanes;

/// The entries of A, Q and R of a matrix up to which the pack stays in the second-level cache, and
/// is faster than strips: below those of 32x32 (AMD EPYC with AVX2, Intel Xeon with AVX-512,
/// 2026-11-30).
constexpr index_t most_entries = 3 * 31 * 31;

check_lanes::Shape shape_of(const Problem& p) {
  return {.m = p.m,
          .n = p.n,
          .q_cols = p.q_cols(),
          .gram_run = strips::choose_runs(p.type == ElementType::float64, p.m, p.n).gram};
}

}  // namespace

std::span<const check_lanes::Kernels* const> check_lanes::kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(check_lanes, check_lanes)};
  return supported(all);
}

template <class T>
LaneMeter<T>::LaneMeter(const Problem& problem, const check_lanes::Kernels& kernels)
    : problem_(problem),
      kernels_(kernels),
      shape_(shape_of(problem)),
      workspace_(allocate_host(kernels.workspace_bytes(shape_))) {}

template <class T>
std::size_t LaneMeter<T>::workspace_bytes(const Problem& p) {
  return check_lanes::kernels().front()->workspace_bytes(shape_of(p));
}

template <class T>
bool LaneMeter<T>::pays(const Problem& p) {
  return !is_complex(p.type) && p.wants_q() && !p.is_empty() && p.check != Check::none &&
         p.m * p.n + p.m * p.q_cols() + p.r_rows() * p.n <= most_entries;
}

template <class T>
void LaneMeter<T>::measure(BatchView<const T> a, const Factors<T>& out, std::span<Errors> errors) {
  std::array<double, most_lanes> half, rest;
  for (std::size_t l = 0; l < errors.size(); ++l) {
    const strips::Scaling scaling(errors[l].scale);
    half[l] = scaling.half;
    rest[l] = scaling.rest;
    if constexpr (sizeof(T) == 4) half[l] *= rest[l];
  }
  const check_lanes::Pack<T> pack{.count = a.count,
                                  .a = {a.data, a.ld, a.stride},
                                  .q = {out.q.data, out.q.ld, out.q.stride},
                                  .r = {out.r.data, out.r.ld, out.r.stride},
                                  .half = half.data(),
                                  .rest = rest.data()};
  check_lanes::Norms norms;
  if constexpr (sizeof(T) == 4) {
    kernels_.measure_single(shape_, pack, workspace_.get(), norms);
  } else {
    kernels_.measure_double(shape_, pack, workspace_.get(), norms);
  }
  for (std::size_t l = 0; l < errors.size(); ++l) {
    errors[l].norm = norms.a[l];
    errors[l].residual = strips::relative(norms.residual[l], norms.a[l]);
    errors[l].orthogonality = norms.orthogonality[l];
    errors[l].lower = strips::relative(norms.lower[l], norms.a[l]);
    errors[l].diagonal_ratio = norms.largest[l] > 0 ? norms.least[l] / norms.largest[l] : 0;
  }
}

template <class T>
bool LaneMeter<T>::is_close(const Errors& errors) const {
  return sizeof(T) == 8 &&
         strips::needs_exact_orthogonality(problem_.m, problem_.n, errors.orthogonality);
}

template class LaneMeter<float>;
template class LaneMeter<double>;

}  // namespace qrtool
