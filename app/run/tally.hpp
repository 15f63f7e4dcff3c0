// SPDX-License-Identifier: Apache-2.0
// tally.hpp: what a batch's report comes to: counts per status and the worst errors.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "core/batch.hpp"
#include "core/ratios.hpp"
#include "core/report.hpp"

namespace qrtool {

/// Position in the leading dimensions: "17", or "[1,2]" where there are several.
std::string matrix_name(std::span<const index_t> leading, index_t matrix);

/// The largest ratio of an error to its bar so far. NaN is worse than any number.
struct Worst {
  double error = 0, ratio = 0;
  index_t matrix = -1;  // -1: nothing was measured

  void add(double measured, double bar, index_t b);
};

class Tally {
 public:
  explicit Tally(bool has_q) : has_q_(has_q) {}

  void add(index_t matrix, Status status, const Errors& errors, const Bars& bars);

  index_t matrices() const { return matrices_; }
  index_t count(Status status) const { return counts_[static_cast<std::size_t>(status)]; }
  index_t first(Status status) const { return firsts_[static_cast<std::size_t>(status)]; }
  /// Above the bar, not finite, or R too large.
  index_t failed() const;

  /// "worst residual 3.1e-16 (0.05 of its bar, matrix 17), orthogonality ..."; empty where nothing
  /// was measured.
  std::string worst_line(std::span<const index_t> leading) const;

  /// The worst errors; not a number where nothing was measured.
  double worst_residual() const { return residual_.error; }
  double worst_orthogonality() const { return orthogonality_.error; }

  /// {"matrices", "passed", "failed", "status": {...}, "worst": {...}}; NaN is printed as null.
  nlohmann::ordered_json to_json() const;

 private:
  bool has_q_;
  index_t matrices_ = 0;
  std::array<index_t, 5> counts_{}, firsts_{};
  Worst residual_, orthogonality_, lower_;
};

}  // namespace qrtool
