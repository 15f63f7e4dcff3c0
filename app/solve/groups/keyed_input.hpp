// SPDX-License-Identifier: Apache-2.0
// keyed_input.hpp: reads a table with keys, and keeps its rows by their groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "app/solve/groups/group_system.hpp"
#include "app/solve/groups/key_table.hpp"
#include "app/solve/groups/row_store.hpp"
#include "core/problem.hpp"
#include "io/csv/group_table.hpp"
#include "io/csv/keyed_rows.hpp"

namespace qrtool {

/// The table of a run of `solve --by`.
struct KeyedInput {
  Source source = {};
  GroupSystem system = {};
  KeyTable keys = {};
  std::vector<index_t> counts = {};  // rows of each group that are kept
  std::optional<RowStore> rows = {};
  GroupTableSpec table = {};  // the names of the output's columns
  std::vector<std::string> responses = {};

  /// The memory of the keys, with what is counted of each group: its rows, the first of them, and
  /// where the next one goes.
  std::size_t key_bytes() const {
    return keys.bytes() + (counts.capacity() + 2 * counts.size()) * sizeof(index_t);
  }
};

/// Says what is done with the rows. store: they are kept, in at most half of the memory; count:
/// only their groups are.
enum class KeepRows { store, count };

/// Reads the table of o.a in one pass. Rows that count for no response are left out. Errors:
/// InputError, also where a column is not there, a weight is none, or two columns of the output
/// would have one name; LimitError where the keys take more than a quarter of the memory.
KeyedInput read_keyed_input(const SolveOptions& o, const Limits& limits, KeepRows keep);

}  // namespace qrtool
