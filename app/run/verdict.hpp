// SPDX-License-Identifier: Apache-2.0
// verdict.hpp: sums up the report of a batch: counts per status and the worst errors.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/ratios.hpp"
#include "core/report.hpp"

namespace qrtool {

/// The error with the largest ratio to its bar so far. NaN is worse than any number.
struct WorstError {
  double error = 0, ratio = 0;
  index_t matrix = -1;  // -1: nothing was measured

  void include(double measured, double bar, index_t of_matrix);
};

/// The errors of one matrix, their bars and its status.
struct Measurement {
  index_t matrix = 0;
  Status status = Status::unchecked;
  Errors errors;
  Bars bars{};
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
  std::vector<Measurement> failures_;
};

}  // namespace qrtool
