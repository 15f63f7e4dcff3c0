// SPDX-License-Identifier: Apache-2.0
// group_result.hpp: sums up the groups of a run of `solve --by`, for people and for machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/options.hpp"
#include "app/solve/groups/keyed_input.hpp"
#include "app/solve/solve_result.hpp"

namespace qrtool {

/// The word for a solution in the output: that of its status, or `singular` where it passes and is
/// not the only one.
std::string_view status_word(const GroupLine& line, index_t terms);

struct GroupResult {
  const KeyedInput& input;
  SolveVerdict verdict = {};
  index_t singular = 0;
  index_t least_rank = 0;  // of the singular ones
  int threads = 1;
  double read_seconds = 0, solve_seconds = 0, sync_seconds = 0, total_seconds = 0;

  /// Solution `number`; they are counted response by response for each group.
  void add(index_t number, const GroupLine& line);
};

/// Prints bad solutions to standard error, then the result.
void print_group_result(const SolveOptions& options, const GroupResult& result);

}  // namespace qrtool
