// SPDX-License-Identifier: Apache-2.0
// lane_meter.hpp: ErrorMeter for small matrices, as many at a time as a vector has lanes. Private
// to core/cpu.
#pragma once

#include <span>

#include "core/backend/backend.hpp"
#include "core/cpu/check/lane_kernel.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

/// Measures matrices of one shape. Their errors do not depend on their neighbours in a call.
///
/// The sums are those of core/measure/error_meter.cpp, and so is the bound: an entry of Q'Q is made
/// of plain sums of as many products, which are added pairwise, and an entry of A - QR loses sums
/// of 8 products one after another.
template <class T>
class LaneMeter {
 public:
  explicit LaneMeter(const Problem& problem,
                     const check_lanes::Kernels& kernels = *check_lanes::kernels().front());
  static std::size_t workspace_bytes(const Problem& problem);
  /// Whether the meter can measure such factors, and does it faster than ErrorMeter.
  static bool pays(const Problem& problem);

  index_t lanes() const { return kernels_.lanes; }

  /// Measures at most lanes() matrices, whose scales are in `errors`, and writes their errors
  /// there. If is_close() is true of a matrix, ErrorMeter's orthogonality is the more exact one.
  void measure(BatchView<const T> a, const Factors<T>& out, std::span<Errors> errors);
  bool is_close(const Errors& errors) const;

 private:
  Problem problem_;
  const check_lanes::Kernels& kernels_;
  check_lanes::Shape shape_;
  HostMemory workspace_;
};

}  // namespace qrtool
