// SPDX-License-Identifier: Apache-2.0
// verdict.hpp: sums up the report of a batch: counts per status and the worst errors.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "app/engine/factors_meter.hpp"
#include "core/batch.hpp"
#include "core/report/ratios.hpp"
#include "core/report/report.hpp"

namespace qrtool {

/// An error in units of its bar. No error can be better than 0, also where the bar is 0 (a matrix
/// without columns).
inline double in_bars(double error, double bar) { return error == 0 ? 0 : error / bar; }

/// The error with the largest ratio to its bar so far. NaN is worse than any number.
struct WorstError {
  double error = 0, ratio = 0;
  index_t matrix = -1;  // -1: nothing was measured

  void include(double measured, double bar, index_t of_matrix);
};

/// What is known of the rank and the condition of the matrices, where it was asked for.
struct RankSummary {
  index_t matrices = 0;   // with a rank
  index_t deficient = 0;  // of them, whose rank is less than min(m, n)
  index_t least = -1, least_matrix = -1;
  double worst_condition = not_measured;
  index_t worst_matrix = -1;

  void include(index_t matrix, const MatrixReport& line, index_t full_rank);
};

class Verdict {
 public:
  explicit Verdict(bool has_q) : has_q_(has_q) {}

  /// The most matrices that failures() lists.
  static constexpr std::size_t most_failures = 100;

  void add(const Measurement& measured);

  bool has_q() const { return has_q_; }
  index_t matrices() const { return matrices_; }
  index_t count(Status status) const { return counts_[static_cast<std::size_t>(status)]; }
  index_t first(Status status) const { return firsts_[static_cast<std::size_t>(status)]; }
  /// Counts the matrix of this line under the route that it took.
  void add_route(const MatrixReport& line) { routes_.include(line); }
  const RouteCounts& routes() const { return routes_; }
  /// Adds rank and condition of the matrix that was added last; its full rank is min(m, n).
  void add_rank(const MatrixReport& line, index_t full_rank) {
    ranks_.include(matrices_ - 1, line, full_rank);
  }
  const RankSummary& ranks() const { return ranks_; }
  /// Above the bar, not finite, or R too large.
  index_t failed() const;
  /// The first of them.
  std::span<const Measurement> failures() const { return failures_; }

  const WorstError& residual() const { return residual_; }
  const WorstError& orthogonality() const { return orthogonality_; }
  const WorstError& lower() const { return lower_; }

 private:
  bool has_q_;
  index_t matrices_ = 0;
  std::array<index_t, 5> counts_{}, firsts_{};
  WorstError residual_, orthogonality_, lower_;
  RouteCounts routes_;
  RankSummary ranks_;
  std::vector<Measurement> failures_;
};

}  // namespace qrtool
