// SPDX-License-Identifier: Apache-2.0
// report_columns.hpp: what each dataset of /report says about itself, so that a file explains its
// own numbers.
#pragma once

#include <array>
#include <string_view>

#include "core/problem.hpp"

namespace qrtool {

/// The texts are plain words and formulas in ASCII.
struct ReportColumn {
  std::string_view name, description, formula, unit;
  std::string_view bar_formula;  // "none" where nothing is held to a bar
  /// The largest value that passes; NaN where there is none. The residual of a matrix of denormal
  /// numbers may be larger, as the formula says.
  double bar;
};

/// Describes residual, orthogonality, lower, diagonal_ratio, status, scale and tries, in this
/// order, for matrices that are factored in this way. Definitions: core/ratios.hpp.
std::array<ReportColumn, 7> report_columns(const Problem& problem);

}  // namespace qrtool
