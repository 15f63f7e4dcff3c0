// SPDX-License-Identifier: Apache-2.0
// verdict.cpp: adds up the report of a batch.
#include "app/run/verdict/verdict.hpp"

#include <cmath>

namespace qrtool {

void MeasuredError::include(const MeasuredError& other) {
  if (other.at < 0 || (at >= 0 && (std::isnan(ratio) || other.ratio <= ratio))) return;
  *this = other;
}

Judged judged(const Measurement& measured, bool has_q) {
  const auto& [at, status, errors, bars] = measured;
  Judged one{.at = at,
             .status = status,
             .errors = {{{errors.residual, bars.residual, at},
                         {errors.orthogonality, bars.orthogonality, at},
                         {errors.lower, bars.lower, at}}}};
  if (std::isnan(errors.residual)) one.reason = "its factors hold NaN or Inf";
  if (status == Status::non_finite) one.reason = "it holds NaN or Inf";
  if (!has_q) one.errors[1] = {};
  return one;
}

Judged judged(index_t at, const SolutionReport& report) {
  const auto error = [&](double measured) {
    return MeasuredError(measured, report.bar, std::isnan(measured) ? -1 : at);
  };
  return {.at = at,
          .status = report.status,
          .errors = {error(report.backward_error), error(report.least_norm_error)},
          .bar = report.bar,
          .residual_norm = report.residual_norm};
}

void RankSummary::include(index_t matrix, index_t rank, double condition, index_t full_rank) {
  ++matrices;
  if (!std::isnan(condition) && !(condition <= worst_condition)) {
    worst_condition = condition;
    worst_matrix = matrix;
  }
  if (rank < 0) return;
  ++with_rank;
  if (rank < full_rank) ++deficient;
  if (least >= 0 && rank >= least) return;
  least = rank;
  least_matrix = matrix;
}

void Verdict::add(const Judged& one) {
  const auto s = static_cast<std::size_t>(one.status);
  ++all_;
  if (counts_[s]++ == 0) firsts_[s] = one.at;
  if (!most_listed_ || (one.fails() && listed_.size() < *most_listed_)) listed_.push_back(one);
  if (one.status == Status::non_finite || one.status == Status::r_overflows ||
      one.status == Status::unchecked)
    return;
  for (std::size_t i = 0; i < worst_.size(); ++i) worst_[i].include(one.errors[i]);
}

index_t Verdict::failed() const {
  return count(Status::above_bar) + count(Status::non_finite) + count(Status::r_overflows);
}

}  // namespace qrtool
