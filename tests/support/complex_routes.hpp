// SPDX-License-Identifier: Apache-2.0
// complex_routes.hpp: both ways of the CPU to factor complex matrices, behind one interface.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/cpu/batched/batched_qr.hpp"
#include "core/cpu/blocked/blocked_qr.hpp"

namespace qrtool::test {

/// packs: one matrix in each SIMD lane; strips: one matrix at a time, in strips of 16 columns.
enum class ComplexRoute { packs, strips };

/// The route that cpu/complex takes.
inline ComplexRoute complex_route(const Problem& p) {
  return complex_takes_packs(p.m, p.n) ? ComplexRoute::packs : ComplexRoute::strips;
}

/// Factors complex matrices of one shape by the kernels of one instruction set.
template <class T>
class ComplexFactor {
 public:
  using Complex = std::complex<T>;

  ComplexFactor(const Problem& p, ComplexRoute route, std::string_view target = {}) {
    if (route == ComplexRoute::packs) {
      packs_.emplace(p, find(batched_kernels(), target));
    } else {
      strips_.emplace(p, 1, find(blocked_kernels(), target));
    }
  }

  index_t matrices_at_once() const { return packs_ ? packs_->matrices_at_once() : 1; }

  void factor(BatchView<const Complex> a, const Factors<Complex>& out,
              std::span<batched::Outcome> outcomes) {
    if (packs_) return packs_->factor(a, out, outcomes);
    outcomes[0] = strips_->factor(a[0], {out.q[0], out.r[0], out.v[0], out.tau[0]});
  }

 private:
  /// The kernels of the target, or the first ones.
  template <class Kernels>
  static const Kernels& find(std::span<const Kernels* const> all, std::string_view target) {
    for (const Kernels* kernels : all)
      if (kernels->target == target) return *kernels;
    return *all.front();
  }

  std::optional<BatchedQr<Complex>> packs_;
  std::optional<BlockedQr<Complex>> strips_;
};

}  // namespace qrtool::test
