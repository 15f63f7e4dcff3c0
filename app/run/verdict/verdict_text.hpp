// SPDX-License-Identifier: Apache-2.0
// verdict_text.hpp: a verdict in words and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "app/run/verdict/verdict.hpp"

namespace qrtool {

/// Returns the position in the leading dimensions: "17", or "[1,2]" if there are several.
std::string matrix_name(std::span<const index_t> leading, index_t matrix);
/// Names matrices or solutions by these dimensions.
NameOf named_by(std::vector<index_t> leading);

/// Returns "1 matrix" or "1,200 matrices".
std::string counted(index_t count, const Subject& subject);
/// Returns the words for a status after a count: "above the bar".
std::string_view words_of(Status status, const Subject& subject);

/// Returns "worst residual 3.1e-16 (0.05 of its bar, matrix 17), orthogonality ...", or an empty
/// text if nothing was measured.
std::string worst_line(const Verdict& verdict);
/// Returns "matrix 12 fails: residual 3.1e-03 (8.7e+11 of its bar), orthogonality ..."
std::string line_of(const Judged& one, const Verdict& verdict);
/// Returns "all 9 pass", "the matrix passes", or "3 of 9 pass, 4 above the bar, 2 not finite"; in
/// red if some fail and `may_be_red`.
std::string verdict_line(const Verdict& verdict, bool may_be_red = true);
/// Returns the line "3 matrices came from a second try by reflectors", or an empty text if none
/// did.
std::string second_try_line(const Verdict& verdict);

/// Lines that say how the errors of factors differ from those of usual runs. `how`: how the
/// residual was found.
inline constexpr std::string_view estimates_line =
    "these errors are estimates, except those of matrices close to a bar\n";
std::string r_alone_line(std::string_view how = {});

/// Returns "9,998 by A'A in one pass, 1 in two passes, 0 in further passes, 1 by reflectors, 0 in a
/// second try"
std::string route_text(const RouteCounts& routes);

/// Returns {"only", "first_pass", "second_pass", "further_passes", "reflectors", "second_try"}
nlohmann::ordered_json to_json(const RouteCounts& routes);
/// Returns {"error", "ratio"}, and where it was measured under the key `place`, if that is not
/// empty; null where it was not measured. NaN is printed as null.
nlohmann::ordered_json to_json(const MeasuredError& measured, std::string_view place);
/// Returns {"matrices", "passed", "failed", "status": {...}, "worst": {...}}
nlohmann::ordered_json to_json(const Verdict& verdict);
/// Returns the factors that are listed: {"matrix", "status", "residual": {"error", "ratio"}, ...}
/// for each.
nlohmann::ordered_json listed_json(const Verdict& verdict);

}  // namespace qrtool
