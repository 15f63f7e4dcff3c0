// SPDX-License-Identifier: Apache-2.0
// spoiled_backend.hpp: a backend whose first try goes wrong for the matrices that a test has
// marked, so that the second try is reached on purpose.
#pragma once

#include "core/backend/backend.hpp"

namespace qrtool::test {

/// A matrix with this first entry is spoiled.
inline constexpr float spoiled_mark = 3.0F;

/// Multiplies R_00 of marked matrices by 1 + `first`, and where a second try asks by 1 + `second`.
class SpoiledBackend final : public Backend {
 public:
  /// `tells`: the report shows the error. If not, only a check of the whole matrix finds it.
  explicit SpoiledBackend(Backend& backend, bool tells = true, float first = 0.01F,
                          float second = 0)
      : backend_(backend), tells_(tells), first_(first), second_(second) {}

  std::string name() const override { return backend_.name(); }
  std::string device() const override { return backend_.device(); }
  std::span<const Variant> variants() const override { return backend_.variants(); }
  Limits limits() const override { return backend_.limits(); }
  HostMemory allocate(std::size_t bytes) override { return backend_.allocate(bytes); }

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override {
    return std::visit(
        [&](const auto& chunk) { return factor_and_spoil(plan, chunk.a, chunk.out, chunk.report); },
        any);
  }

  /// Matrices that this backend was asked to factor in a second try.
  index_t tried_again() const { return tried_again_; }

 private:
  template <class T>
  ChunkSeconds factor_and_spoil(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                                std::span<MatrixReport> report) {
    const ChunkSeconds seconds = backend_.factor(plan, a, out, report);
    // A second try uses the operations of the type alone; no test here asks for that in the first.
    const bool is_second = plan.problem.arithmetic == Arithmetic::strict;
    const float error = is_second ? second_ : first_;
    if (is_second) tried_again_ += a.count;
    const BatchView<T>& r = plan.problem.mode == Mode::raw ? out.v : out.r;
    for (index_t b = 0; b < a.count && error > 0; ++b) {
      if (a[b](0, 0) != T(spoiled_mark)) continue;
      r[b](0, 0) *= T(1) + T(error);
      MatrixReport& line = report[static_cast<std::size_t>(b)];
      if (!tells_) continue;
      line.residual = static_cast<double>(error);
      line.status = Status::above_bar;
    }
    return seconds;
  }

  Backend& backend_;
  bool tells_;
  float first_, second_;
  index_t tried_again_ = 0;
};

}  // namespace qrtool::test
