// SPDX-License-Identifier: Apache-2.0
// host_check.hpp: the verdict on a matrix, from what the device measured or measured anew by the
// host.
#pragma once

#include <memory>

#include "core/backend.hpp"
#include "core/problem.hpp"
#include "core/ratios.hpp"
#include "core/report.hpp"
#include "gpu/gpu_variant.hpp"

namespace qrtool {

/// A line of the report from the device's measurement.
MatrixReport judge_device(const Problem& problem, const DeviceErrors& errors);

/// Host bytes that measuring one matrix takes; 0 where the host does not measure matrices of this
/// size (tuning::host_sample_operations).
std::size_t host_check_bytes(const Problem& problem);

/// Re-measures matrices with core's ErrorMeter, within a budget of operations.
template <class T>
class HostCheck {
 public:
  explicit HostCheck(const Problem& problem);
  ~HostCheck();

  /// Whether the budget allows one more matrix.
  bool can_measure() const;

  /// Line of the report for matrix b of the factors.
  MatrixReport measure(MatrixView<const T> a, const Factors<T>& out, index_t b);

 private:
  struct Workspace;
  Errors measure_reflectors(MatrixView<const T> a, const Factors<T>& out, index_t b, int scale);

  Problem problem_;
  double operations_left_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace qrtool
