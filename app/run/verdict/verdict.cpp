// SPDX-License-Identifier: Apache-2.0
// verdict.cpp: adds up the report of a batch.
#include "app/run/verdict/verdict.hpp"

#include <cmath>

namespace qrtool {

void WorstError::include(double measured, double bar, index_t of_matrix) {
  const double measured_ratio = in_bars(measured, bar);
  if (matrix >= 0 && measured_ratio <= ratio) return;
  if (matrix >= 0 && std::isnan(ratio)) return;
  *this = {.error = measured, .ratio = measured_ratio, .matrix = of_matrix};
}

void RankSummary::include(index_t matrix, const MatrixReport& line, index_t full_rank) {
  if (!std::isnan(line.condition) && !(line.condition <= worst_condition)) {
    worst_condition = line.condition;
    worst_matrix = matrix;
  }
  if (line.rank < 0) return;
  ++matrices;
  if (line.rank < full_rank) ++deficient;
  if (least >= 0 && line.rank >= least) return;
  least = line.rank;
  least_matrix = matrix;
}

void Verdict::add(const Measurement& measured) {
  const auto& [matrix, status, errors, bars] = measured;
  const auto s = static_cast<std::size_t>(status);
  ++matrices_;
  if (counts_[s]++ == 0) firsts_[s] = matrix;
  const bool is_failure = status != Status::ok && status != Status::unchecked;
  if (is_failure && failures_.size() < most_failures) failures_.push_back(measured);
  if (status != Status::ok && status != Status::above_bar) return;
  residual_.include(errors.residual, bars.residual, matrix);
  if (has_q_) orthogonality_.include(errors.orthogonality, bars.orthogonality, matrix);
  lower_.include(errors.lower, bars.lower, matrix);
}

index_t Verdict::failed() const {
  return count(Status::above_bar) + count(Status::non_finite) + count(Status::r_overflows);
}

}  // namespace qrtool
