// SPDX-License-Identifier: Apache-2.0
// batched_qr.cpp: chooses the kernels for this processor and calls them with packs of matrices.
#include "core/cpu/batched/batched_qr.hpp"

#include <array>

#include "core/cpu/batched/kernel_call.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {

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
template class BatchedQr<std::complex<float>>;
template class BatchedQr<std::complex<double>>;

bool complex_takes_packs(index_t m, index_t n) {
  // A matrix is factored in packs if it has at most this many rows or entries. Packs take 0.73 of
  // the time of strips for 240x66, 0.87 to 1.04 for 128x128, and 1.08 to 1.4 for 256x128 (AMD EPYC
  // with AVX2 and 512 KiB of second-level cache, 2026-11-26). With few rows the rounding errors of
  // strips would be larger relative to the bar, which grows with the rows.
  constexpr index_t most_rows = 64, most_entries = 128 * 128;
  return m <= most_rows || m * n <= most_entries;
}

std::size_t batched_qr_workspace_bytes(const Problem& problem) {
  return with_type(problem.type, [&](auto zero) {
    return routine_of<decltype(zero)>(*batched_kernels().front(), problem)
        .workspace_bytes(shape_of(problem));
  });
}

index_t batched_qr_lanes(const Problem& problem) {
  return with_type(problem.type, [&](auto zero) -> index_t {
    return routine_of<decltype(zero)>(*batched_kernels().front(), problem).lanes;
  });
}

}  // namespace qrtool
