// SPDX-License-Identifier: Apache-2.0
// batched_qr.cpp: chooses the kernels for this processor and calls them with packs of matrices.
#include "core/cpu/batched/batched_qr.hpp"

#include <array>

#include "core/eigen/eigen_qr.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {
namespace {

batched::Shape shape_of(const Problem& p) {
  const bool raw = p.mode == Mode::raw;
  return {.m = p.m,
          .n = p.n,
          .k = p.k(),
          .q_cols = p.q_cols(),
          .r_rows = p.r_rows(),
          .is_raw = raw,
          .is_positive = !raw && p.sign == Sign::positive};
}

template <class T>
const batched::Routine<T>& routine_of(const batched::Kernels& kernels, const Problem& problem) {
  if constexpr (sizeof(T) == 8) {
    return kernels.real.in_double;
  } else {
    return computes_in_float64(problem) ? kernels.real.float_in_double : kernels.real.in_float;
  }
}

template <class T>
batched::Strided<T> strided(BatchView<T> view) {
  return {view.data, view.ld, view.stride};
}

}  // namespace

std::span<const batched::Kernels* const> batched_kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(batched, kernels)};
  return supported(all);
}

template <class T>
BatchedQr<T>::BatchedQr(const Problem& problem, const batched::Kernels& kernels)
    : shape_(shape_of(problem)),
      routine_(routine_of<T>(kernels, problem)),
      workspace_(allocate_host(routine_.workspace_bytes(shape_))) {}

template <class T>
void BatchedQr<T>::factor(BatchView<const T> a, const Factors<T>& out,
                          std::span<batched::Outcome> outcomes) {
  routine_.factor(shape_,
                  {.count = a.count,
                   .a = strided(a),
                   .q = strided(out.q),
                   .r = strided(out.r),
                   .v = strided(out.v),
                   .tau = strided(out.tau),
                   .outcomes = outcomes.data()},
                  workspace_.get());
}

template class BatchedQr<float>;
template class BatchedQr<double>;

std::size_t batched_qr_workspace_bytes(const Problem& problem) {
  const batched::Kernels& kernels = *batched_kernels().front();
  const batched::Shape shape = shape_of(problem);
  return problem.type == ElementType::float32
             ? routine_of<float>(kernels, problem).workspace_bytes(shape)
             : routine_of<double>(kernels, problem).workspace_bytes(shape);
}

index_t batched_qr_lanes(const Problem& problem) {
  const batched::Kernels& kernels = *batched_kernels().front();
  return problem.type == ElementType::float32 ? routine_of<float>(kernels, problem).lanes
                                              : kernels.real.in_double.lanes;
}

}  // namespace qrtool
