// SPDX-License-Identifier: Apache-2.0
// wall_time.hpp: where the wall time of a run went.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qrtool {

/// The time of one step of a run. Steps of different threads may run at the same time.
struct SecondsColumn {
  std::string_view name;
  double seconds = 0;
  std::string rate = {};  // after the seconds, such as " (905 MB/s)"
};

/// The columns and the wall time `total`, which is their sum less `overlap`, from the start of the
/// process or of the work on one input to the last step before the result is printed. Time that two
/// columns count is in `overlap` once; time that three count, twice. Without `overlap` there are
/// other steps besides those of the columns.
struct WallTime {
  std::vector<SecondsColumn> columns;
  std::optional<double> overlap = {};
  double total = 0;
};

/// Returns "start 21 ms, read 35.4 ms (905 MB/s), write 36.9 ms; overlap 20 ms, total 73.3 ms": the
/// columns that are not zero.
std::string text_of(const WallTime& time);
/// Returns {"start": 0.021, ..., "overlap": 0.02, "total": 0.0733}: all columns.
nlohmann::ordered_json to_json(const WallTime& time);

}  // namespace qrtool
