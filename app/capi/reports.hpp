// SPDX-License-Identifier: Apache-2.0
// reports.hpp: what is found about matrices, in the caller's array of reports.
#pragma once

#include <algorithm>
#include <cstring>

#include "app/capi/calls.hpp"
#include "core/batch.hpp"
#include "core/report/report.hpp"
#include "core/solve/system_solver.hpp"

namespace qrtool::capi {

inline qrtool_report report_of(const MatrixReport& line) {
  return {.residual = line.residual,
          .orthogonality = line.orthogonality,
          .lower = line.lower,
          .residual_bar = line.bars.residual,
          .orthogonality_bar = line.bars.orthogonality,
          .lower_bar = line.bars.lower,
          .diagonal_ratio = line.diagonal_ratio,
          .condition = line.condition,
          .status = static_cast<std::int32_t>(line.status),
          .rank = line.rank,
          .tries = line.tries,
          .scale = line.scale};
}

/// An array of structs, each of the size that the caller knows, which may be smaller than ours.
template <class Struct>
class ReportArray {
 public:
  /// A null pointer means that no reports are wanted. Errors: UsageError.
  ReportArray(Struct* first, std::size_t size)
      : first_(reinterpret_cast<std::byte*>(first)), size_(size == 0 ? sizeof(Struct) : size) {
    if (size_ < sizeof(std::int64_t)) throw UsageError("report_size is no size of a report");
  }

  void add(index_t number, const Struct& report) { count(put(number, report)); }
  /// The two parts of add(): threads may put reports at once. Returns whether the report is good.
  bool put(index_t number, const Struct& report) const {
    const bool is_good = report.status == QRTOOL_GOOD || report.status == QRTOOL_UNCHECKED;
    if (first_ == nullptr) return is_good;
    std::byte* const place = first_ + static_cast<std::size_t>(number) * size_;
    std::memset(place, 0, size_);
    std::memcpy(place, &report, std::min(size_, sizeof report));
    return is_good;
  }
  void count(bool are_good) { are_good_ = are_good_ && are_good; }
  const void* first() const { return first_; }
  /// The bytes of one, as the caller knows it.
  std::size_t size() const { return size_; }
  /// Starts over: all reports will come again.
  void restart() { are_good_ = true; }
  int code() const { return are_good_ ? QRTOOL_OK : QRTOOL_NOT_ALL_GOOD; }

 private:
  std::byte* first_;
  std::size_t size_;
  bool are_good_ = true;
};
using Reports = ReportArray<qrtool_report>;
using Solutions = ReportArray<qrtool_solution>;

inline qrtool_solution report_of(const SolutionReport& line, const MatrixFindings& found,
                                 double ridge) {
  return {.residual_norm = line.residual_norm,
          .backward_error = line.backward_error,
          .least_norm_error = line.least_norm_error,
          .bar = line.bar,
          // A ridge leaves a number of them that is not whole.
          .degrees_of_freedom = ridge > 0 ? not_measured : line.freedom,
          .condition = found.condition,
          .scaled_condition = found.scaled_condition,
          .status = static_cast<std::int32_t>(line.status),
          .rank = found.rank,
          .tries = line.tries,
          .reserved = 0};
}

}  // namespace qrtool::capi
