// SPDX-License-Identifier: Apache-2.0
// report.hpp: what is recorded about every matrix beside its factors.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace qrtool {

/// Stored as uint8 in /report/status. A larger problem wins: non_finite over r_overflows over
/// above_bar.
enum class Status : std::uint8_t {
  ok = 0,
  above_bar = 1,
  non_finite = 2,   // the input holds NaN or Inf; the factors are NaN
  r_overflows = 3,  // R is larger than its type can hold
  unchecked = 4,    // no second look at A was made
};

/// How a matrix was factored where the variant has a choice.
enum class Route : std::uint8_t { only = 0, first_pass = 1, second_pass = 2, reflectors = 3 };

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// One matrix's line of the report. Definitions: core/ratios.hpp.
struct MatrixReport {
  double residual = not_measured;
  double orthogonality = not_measured;
  double lower = not_measured;
  double diagonal_ratio =
      not_measured;  // min |r_ii| / max |r_ii|: a rank hint, no condition number
  Status status = Status::unchecked;
  std::int32_t scale = 0;  // power of two: max |a_ij| lies in [2^(scale-1), 2^scale); 0 for A = 0
  Route route = Route::only;  // `only` too where a variant does not say which way it took
};

}  // namespace qrtool
