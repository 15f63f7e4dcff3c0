// SPDX-License-Identifier: Apache-2.0
// host_check.hpp: the verdict on a matrix, from the device's measurement or from a second one by
// the host.
#pragma once

#include <memory>

#include "core/backend/backend.hpp"
#include "core/problem/problem.hpp"
#include "core/report/ratios.hpp"
#include "core/report/report.hpp"
#include "gpu/common/shapes.clh"

namespace qrtool {

/// The same errors with numbers of float64, where a device without it has written pairs of floats.
DeviceErrors in_float64(DeviceErrors errors);

/// Returns the line of the report for the errors that the device measured.
MatrixReport judge_device(const Problem& problem, const DeviceErrors& errors);

/// Returns the line where no errors were measured (range.hpp).
MatrixReport unchecked_report(const DeviceErrors& found);

/// The line of the report of matrix b where nothing is checked: it says only whether A and R are
/// finite.
template <class T>
MatrixReport look_at(const Problem& problem, MatrixView<const T> a, const Factors<T>& out,
                     index_t b);

/// Measures matrices again with core's ErrorMeter, within a budget of operations.
template <class T>
class HostCheck {
 public:
  explicit HostCheck(const Problem& problem);
  ~HostCheck();

  /// Whether something is left of the budget, and the matrices are not too large.
  bool can_measure() const;

  /// Raises the budget, because the device was wrong.
  void distrust();

  /// Measures matrix b of the factors and returns its line of the report.
  MatrixReport measure(MatrixView<const T> a, const Factors<T>& out, index_t b);

 private:
  struct Workspace;
  Errors measure_reflectors(MatrixView<const T> a, const Factors<T>& out, index_t b, int scale);

  Problem problem_;
  double operations_left_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace qrtool
