// SPDX-License-Identifier: Apache-2.0
// verdict_text.hpp: a verdict in words and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "app/run/verdict/verdict.hpp"

namespace qrtool {

/// Position in the leading dimensions: "17", or "[1,2]" where there are several.
std::string matrix_name(std::span<const index_t> leading, index_t matrix);

/// "worst residual 3.1e-16 (0.05 of its bar, matrix 17), orthogonality ..."; empty where nothing
/// was measured.
std::string worst_line(const Verdict& verdict, std::span<const index_t> leading);

/// "residual 3.1e-16 (0.05 of its bar)"; only the first error of a line says `of_its_bar`.
std::string error_text(std::string_view name, double error, double bar,
                       std::string_view of_its_bar);

/// "all 9 pass", or "3 of 9 pass, 4 above the bar, 2 not finite" with those of `others` that are
/// not 0.
using NamedCount = std::pair<index_t, std::string_view>;
std::string passed_text(index_t passed, index_t all, std::span<const NamedCount> others);

/// "9,998 by A'A in one pass, 1 in two passes, 0 in further passes, 1 by reflectors, 0 in a second
/// try"
std::string route_text(const RouteCounts& routes);

/// {"only", "first_pass", "second_pass", "further_passes", "reflectors", "second_try"}
nlohmann::ordered_json to_json(const RouteCounts& routes);

/// {"matrix", "status", "residual": {"error", "ratio"}, "orthogonality", "lower"}; without Q the
/// orthogonality is null.
nlohmann::ordered_json to_json(const Measurement& measured, bool has_q);
/// One of these for each.
nlohmann::ordered_json to_json(std::span<const Measurement> measured, bool has_q);

/// {"kind", "matrices", "passed", "failed", "status": {...}, "worst": {...}}; NaN is printed as
/// null.
nlohmann::ordered_json to_json(const Verdict& verdict, Check check);

}  // namespace qrtool
