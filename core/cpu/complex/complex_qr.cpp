// SPDX-License-Identifier: Apache-2.0
// complex_qr.cpp: chooses the kernels for this processor and calls them with packs of matrices.
#include "core/cpu/complex/complex_qr.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "core/machine/parallel.hpp"
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

template <class T, template <class> class Routine>
const Routine<T>& routine_of(const batched::Routines<Routine>& routines, index_t m) {
  if constexpr (sizeof(T) == 8) {
    return routines.in_double;
  } else {
    return complex_qr_widens(m) ? routines.float_in_double : routines.in_float;
  }
}

/// The real m x 2n matrices in memory.
template <class Complex>
auto strided(BatchView<Complex> view) {
  using Part = std::conditional_t<std::is_const_v<Complex>, const typename Complex::value_type,
                                  typename Complex::value_type>;
  return batched::Strided<Part>{reinterpret_cast<Part*>(view.data), 2 * view.ld, 2 * view.stride};
}

template <class T>
void fill_with_nan(MatrixView<std::complex<T>> view) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  for (index_t i = 0; i < view.rows; ++i)
    std::fill_n(view.data + i * view.ld, view.cols, std::complex<T>(nan, nan));
}

}  // namespace

std::span<const complex_qr::Kernels* const> complex_kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(complex_qr, kernels)};
  return supported(all);
}

ComplexRoute complex_route(const Problem& p) {
  // 240x66 takes packs 0.73 of the time of strips, 128x128 0.87 to 1.04, and 256x128 1.08 to 1.4
  // (AMD EPYC with AVX2 and 512 KiB of second-level cache, 2026-11-26). Strips of few rows would
  // round more, beside a bar that grows with the rows.
  constexpr index_t most_rows = 64, most_entries = 128 * 128;
  return p.m <= most_rows || p.m * p.n <= most_entries ? ComplexRoute::packs : ComplexRoute::strips;
}

template <class T>
ComplexQr<T>::ComplexQr(const Problem& problem, ComplexRoute route,
                        const complex_qr::Kernels& kernels)
    : shape_(shape_of(problem)),
      route_(route),
      packs_(routine_of<T>(kernels.packs.complex, problem.m)),
      strips_(routine_of<T>(kernels.strips, problem.m)) {
  workspace_ = allocate_host(route == ComplexRoute::packs ? packs_.workspace_bytes(shape_)
                                                          : strips_.workspace_bytes(shape_));
}

template <class T>
void ComplexQr<T>::factor(BatchView<const Complex> a, const Factors<Complex>& out,
                          std::span<batched::Outcome> outcomes) {
  const auto run = route_ == ComplexRoute::packs ? packs_.factor : strips_.factor;
  run(shape_,
      {.count = a.count,
       .a = strided(a),
       .q = strided(out.q),
       .r = strided(out.r),
       .v = strided(out.v),
       .tau = strided(out.tau),
       .outcomes = outcomes.data()},
      workspace_.get());
}

template <class T>
std::size_t complex_qr_workspace_bytes(const Problem& problem, ComplexRoute route) {
  const complex_qr::Kernels& kernels = *complex_kernels().front();
  const batched::Shape shape = shape_of(problem);
  return route == ComplexRoute::packs
             ? routine_of<T>(kernels.packs.complex, problem.m).workspace_bytes(shape)
             : routine_of<T>(kernels.strips, problem.m).workspace_bytes(shape);
}

namespace {

template <class T>
void fill_with_nan(const Factors<std::complex<T>>& out,
                   std::span<const batched::Outcome> outcomes) {
  for (std::size_t b = 0; b < outcomes.size(); ++b) {
    if (outcomes[b].is_finite) continue;
    for (const auto& view : {out.q, out.r, out.v, out.tau})
      fill_with_nan(view[static_cast<index_t>(b)]);
  }
}

}  // namespace

template <class T>
void factor_complex(const Problem& problem, BatchView<const std::complex<T>> a,
                    const Factors<std::complex<T>>& out, int threads,
                    std::span<batched::Outcome> outcomes) {
  std::vector<std::unique_ptr<ComplexQr<T>>> workers(static_cast<std::size_t>(threads));
  workers[0] = std::make_unique<ComplexQr<T>>(problem);
  const index_t size = workers[0]->matrices_at_once();
  parallel_for((a.count + size - 1) / size, threads, [&](index_t pack, int worker) {
    auto& qr = workers[static_cast<std::size_t>(worker)];
    if (qr == nullptr) qr = std::make_unique<ComplexQr<T>>(problem);
    const index_t first = pack * size, count = std::min(size, a.count - first);
    qr->factor(a.slice(first, count), slice(out, first, count),
               outcomes.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  });
  fill_with_nan<T>(out, outcomes);
}

#define QRTOOL_COMPLEX_QR(T)                                                        \
  template class ComplexQr<T>;                                                      \
  template std::size_t complex_qr_workspace_bytes<T>(const Problem&, ComplexRoute); \
  template void factor_complex<T>(const Problem&, BatchView<const std::complex<T>>, \
                                  const Factors<std::complex<T>>&, int,             \
                                  std::span<batched::Outcome>);
QRTOOL_COMPLEX_QR(float)
QRTOOL_COMPLEX_QR(double)
#undef QRTOOL_COMPLEX_QR

}  // namespace qrtool
