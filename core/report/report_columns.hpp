// SPDX-License-Identifier: Apache-2.0
// report_columns.hpp: what each dataset of /report says about itself, so that a file explains its
// own numbers.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/problem/problem.hpp"
#include "core/report/report.hpp"

namespace qrtool {

/// How a number of a report is stored: float64, int32, a value of an enumeration, or one byte.
enum class NumberKind { real, whole, status, byte };

constexpr std::size_t bytes_of(NumberKind kind) {
  return kind == NumberKind::real ? 8 : kind == NumberKind::whole ? 4 : 1;
}

/// The texts are plain words and formulas in ASCII.
struct ReportColumn {
  std::string_view name, description, formula, unit;
  NumberKind kind = NumberKind::real;
  double (*value)(const MatrixReport& line) = nullptr;  // the number of a matrix
  std::string_view bar_formula;                         // "none" where nothing is held to a bar
  /// The largest value that passes, or NaN if there is none. The residual of a matrix of denormal
  /// numbers may be larger, as the formula says.
  double bar;
};

/// Describes residual, orthogonality, lower, diagonal_ratio, status, scale and tries, in this
/// order, and then rank and condition if the problem asks for them. Definitions:
/// core/report/ratios.hpp, core/factor/ranked_backend.hpp.
std::vector<ReportColumn> report_columns(const Problem& problem);

}  // namespace qrtool
