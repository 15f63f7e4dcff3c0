// SPDX-License-Identifier: Apache-2.0
// group_result.hpp: sums up the groups of a run of `solve --by`, for people and for machines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/options/options.hpp"
#include "app/run/verdict/outcome.hpp"
#include "app/solve/groups/keyed_input.hpp"

namespace qrtool {

/// Returns the word for a solution in the output: the word of its status, or `singular` if it
/// passes and is not the only one.
std::string_view status_word(const GroupLine& line, index_t terms);

struct GroupResult {
  GroupResult(const KeyedInput& input, int threads);

  const KeyedInput& input;
  Verdict verdict;
  int threads = 1;
  WallTime seconds = {};
  std::vector<std::string> files = {};  // that were written, the table first
  index_t off_leverages = 0;            // groups with leverages above the bar

  bool has_failed() const { return verdict.failed() > 0 || off_leverages > 0; }
  /// Solution `number`; they are counted response by response for each group.
  void add(index_t number, const GroupLine& line);
};

/// Describes the run. Its document has the schema qrtool.solve-by/1, or qrtool.solve-window/1.
Outcome outcome_of(const SolveOptions& options, const GroupResult& result);

}  // namespace qrtool
