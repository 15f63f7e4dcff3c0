// SPDX-License-Identifier: Apache-2.0
// report.hpp: what is recorded about every matrix beside its factors.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace qrtool {

/// Stored in /report/status under the names of `status_names`. A larger problem wins: non_finite
/// over r_overflows over above_bar.
enum class Status : std::uint8_t {
  ok = 0,
  above_bar = 1,
  non_finite = 2,    // the input holds NaN or Inf; the factors are NaN
  r_overflows = 3,   // R is larger than its type can hold
  unchecked = 4,     // no second look at A was made
  too_few_rows = 5,  // of solutions alone: the rows that count do not determine x, which is NaN
};

/// The names of the values of Status that a matrix may have, and a solution, in their order.
inline constexpr std::array<std::string_view, 5> status_names{"ok", "above_bar", "non_finite",
                                                              "r_overflows", "unchecked"};
inline constexpr std::array<std::string_view, 6> solution_status_names{
    "ok", "above_bar", "non_finite", "x_overflows", "unchecked", "too_few_rows"};
inline std::string_view name_of(Status status) {
  return status_names[static_cast<std::size_t>(status)];
}

/// How a matrix was factored if the variant has a choice, the fastest way first. A matrix that is
/// factored in parts has the route of its slowest part.
enum class Route : std::uint8_t {
  only = 0,            // the variant has one way, or does not say which it took
  first_pass = 1,      // by A'A, in one pass
  second_pass = 2,     // by A'A, with a second pass for Q
  further_passes = 3,  // by A'A in float64, in further passes because one or two were too few
  reflectors = 4,      // by Householder reflectors
};

/// Whether R comes from A'A.
inline bool is_by_gram(Route route) {
  return route >= Route::first_pass && route <= Route::further_passes;
}

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// The largest value that each error of a matrix may have. Definitions: core/report/ratios.hpp.
struct Bars {
  double residual = not_measured, orthogonality = not_measured, lower = not_measured;
};

/// One matrix's line of the report. Definitions: core/report/ratios.hpp.
struct MatrixReport {
  double residual = not_measured;
  double orthogonality = not_measured;
  double lower = not_measured;
  double diagonal_ratio =
      not_measured;  // min |r_ii| / max |r_ii|: a rank hint, no condition number
  Status status = Status::unchecked;
  std::int32_t scale = 0;  // power of two: max |a_ij| lies in [2^(scale-1), 2^scale); 0 for A = 0
  Route route = Route::only;
  std::uint8_t tries = 1;  // 2: a second try made the factors, or a part of them; 0: not known
  std::int32_t rank = -1;  // numerical rank; -1: not asked for, or there are no factors
  double condition = not_measured;  // an estimate of the condition number of A
  Bars bars = {};                   // that the errors were held to; NaN where none were measured
};

/// How many finite matrices took each route. Those of a second try are counted apart from the
/// others.
struct RouteCounts {
  std::int64_t only = 0, first_pass = 0, second_pass = 0, further_passes = 0, reflectors = 0,
               second_try = 0;

  void include(const MatrixReport& line) {
    if (line.status == Status::non_finite) return;
    if (line.tries > 1) {
      ++second_try;
      return;
    }
    switch (line.route) {
      case Route::only:
        ++only;
        break;
      case Route::first_pass:
        ++first_pass;
        break;
      case Route::second_pass:
        ++second_pass;
        break;
      case Route::further_passes:
        ++further_passes;
        break;
      case Route::reflectors:
        ++reflectors;
        break;
    }
  }
  RouteCounts& operator+=(const RouteCounts& other) {
    only += other.only;
    first_pass += other.first_pass;
    second_pass += other.second_pass;
    further_passes += other.further_passes;
    reflectors += other.reflectors;
    second_try += other.second_try;
    return *this;
  }
  /// Whether the variant had a choice for any matrix.
  bool has_choice() const { return first_pass + second_pass + further_passes + reflectors > 0; }
};

}  // namespace qrtool
