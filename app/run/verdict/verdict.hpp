// SPDX-License-Identifier: Apache-2.0
// verdict.hpp: sums up the report of a batch of matrices or of solutions: counts for each status,
// the worst errors, and those that fail.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/engine/factors_meter.hpp"
#include "core/batch.hpp"
#include "core/report/ratios.hpp"
#include "core/report/report.hpp"
#include "core/solve/system_solver.hpp"

namespace qrtool {

/// The kind of results that a verdict counts, in words that are also keys of JSON. It is the only
/// difference between matrices and solutions.
struct Subject {
  std::string_view one, many;                // "matrix", "matrices"
  std::string_view place;                    // the word before the name of one
  std::array<std::string_view, 3> errors;    // empty: there are fewer
  std::array<std::string_view, 6> statuses;  // by Status; empty: JSON has none
  std::string_view overflow;                 // in words
};
inline constexpr Subject subject_of_factors{
    .one = "matrix",
    .many = "matrices",
    .place = "matrix",
    .errors = {"residual", "orthogonality", "lower"},
    .statuses = {"ok", "above_bar", "non_finite", "r_overflows", "unchecked", ""},
    .overflow = "overflow in R"};
inline constexpr Subject subject_of_solve{
    .one = "solution",
    .many = "solutions",
    .place = "solution",
    .errors = {"backward_error", "least_norm_error", ""},
    .statuses = {"ok", "above_bar", "non_finite", "x_overflows", "", "too_few_rows"},
    .overflow = "overflow in X"};
/// Solutions of `solve --by` have the names of their groups.
inline constexpr Subject subject_of_groups = [] {
  Subject subject = subject_of_solve;
  subject.place = "group";
  return subject;
}();

/// Those of `solve --window` have the numbers of rows.
inline constexpr Subject subject_of_windows = [] {
  Subject subject = subject_of_solve;
  subject.place = "row";
  return subject;
}();

/// An error of the matrix or solution `at`, and its ratio to its bar. at = -1: it was not measured.
struct MeasuredError {
  double error = 0, ratio = 0;
  index_t at = -1;

  MeasuredError() = default;
  MeasuredError(double measured, double bar, index_t of)
      // An error of 0 is the best possible, even if the bar is 0 (a matrix without columns).
      : error(measured), ratio(measured == 0 ? 0 : measured / bar), at(of) {}
  /// Keeps the error with the larger ratio. NaN is worse than any number.
  void include(const MeasuredError& other);
};

/// A matrix or a solution with its errors, in the order of its subject.
struct Judged {
  index_t at = 0;
  Status status = Status::unchecked;
  std::array<MeasuredError, 3> errors = {};
  double bar = not_measured, residual_norm = not_measured;  // of a solution
  const char* reason = nullptr;                             // says why, instead of the errors

  bool fails() const {
    return status == Status::above_bar || status == Status::non_finite ||
           status == Status::r_overflows;
  }
};
Judged judged(const Measurement& measured, bool has_q);
/// An error of a solution that is NaN was not measured.
Judged judged(index_t at, const SolutionReport& report);

/// The rank and the condition of the matrices, if they were asked for.
struct RankSummary {
  index_t matrices = 0;   // that were included
  index_t with_rank = 0;  // of them
  index_t deficient = 0;  // of them, whose rank is less than min(m, n)
  index_t least = -1, least_matrix = -1;
  double worst_condition = not_measured;
  index_t worst_matrix = -1;

  void include(index_t matrix, index_t rank, double condition, index_t full_rank);
};

/// The name of a matrix or of a solution by its number.
using NameOf = std::function<std::string(index_t)>;

class Verdict {
 public:
  /// The most failures that are listed by default.
  static constexpr std::size_t most_failures = 100;

  /// `most_listed`: the most failures that are listed; none: all results are listed, also those
  /// that pass.
  Verdict(const Subject& subject, NameOf name_of,
          std::optional<std::size_t> most_listed = most_failures)
      : subject_(&subject), name_of_(std::move(name_of)), most_listed_(most_listed) {}

  void add(const Judged& one);

  const Subject& subject() const { return *subject_; }
  std::string name_of(index_t at) const { return name_of_(at); }
  index_t all() const { return all_; }
  index_t count(Status status) const { return counts_[static_cast<std::size_t>(status)]; }
  index_t first(Status status) const { return firsts_[static_cast<std::size_t>(status)]; }
  /// Returns the number of results that are above the bar, not finite, or too large for the type.
  index_t failed() const;
  const std::array<MeasuredError, 3>& worst() const { return worst_; }
  std::span<const Judged> listed() const { return listed_; }
  std::span<Judged> listed() { return listed_; }

  RankSummary ranks = {};
  RouteCounts routes = {};
  index_t second_tries = 0;

 private:
  const Subject* subject_;
  NameOf name_of_;
  std::optional<std::size_t> most_listed_;
  index_t all_ = 0;
  std::array<index_t, 6> counts_{}, firsts_{};
  std::array<MeasuredError, 3> worst_{};
  std::vector<Judged> listed_;
};

}  // namespace qrtool
