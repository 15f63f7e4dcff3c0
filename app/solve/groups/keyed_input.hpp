// SPDX-License-Identifier: Apache-2.0
// keyed_input.hpp: reads rows with keys, and keeps them by their groups: a table with --by, or A, B
// and the groups of their rows with --groups.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "app/solve/groups/group_system.hpp"
#include "app/solve/groups/key_table.hpp"
#include "app/solve/groups/row_store.hpp"
#include "app/solve/solve_inputs.hpp"
#include "core/problem/problem.hpp"
#include "io/csv/group_table.hpp"

namespace qrtool {

/// The input of a run of `solve` by groups, or in windows; windows of A and B or of a table without
/// keys have one group.
struct KeyedInput {
  Source source = {};             // the table, or A
  std::uint64_t input_bytes = 0;  // of the files; 0: not known
  GroupSystem system = {};
  KeyTable keys = {};
  std::vector<index_t> counts = {};  // rows of each group that are kept
  std::optional<RowStore> rows = {};
  GroupTableSpec table = {};  // the names of the output's columns
  std::vector<std::string> responses = {};
  // Without keys: B, and the dimensions of the results of one window.
  Source source_of_b = {};
  Dims window_dims = {};

  /// Returns the memory of the keys and of the counts for each group: its rows, the first of them,
  /// and the place of the next one.
  std::size_t key_bytes() const {
    return keys.bytes() + (counts.capacity() + 2 * counts.size()) * sizeof(index_t);
  }
};

/// What is done with the rows. store: they are kept, in at most half of the memory; count: only
/// their groups are.
enum class KeepRows { store, count };

/// Takes rows with their keys, if they have any, whatever they come from. First prepare(), then
/// add() for every row.
class RowKeeper {
 public:
  RowKeeper(const SolveOptions& o, const Limits& limits, KeepRows keep, KeyedInput& input)
      : o_(o), limits_(limits), keep_(keep), input_(input) {}

  /// Sets the use of the `width` numbers of a row, and prepares the problem of a group.
  void prepare(const TableRoles& roles, index_t width);
  /// Sets the names of the output's columns, without the column of --intercept. Errors: InputError
  /// if two columns would have one name.
  void name(std::vector<std::string> keys, const std::vector<std::string>& terms,
            std::vector<std::string> responses);
  /// Adds a row. Errors: InputError if its weight is not valid; LimitError if the keys need more
  /// than a quarter of the memory.
  void add(std::span<const std::string> keys, std::span<const double> numbers);

 private:
  /// Errors: UsageError if a window has fewer rows than A has columns.
  void complete_window();
  void require_weight(double weight) const;
  void require_room_for_keys() const;

  const SolveOptions& o_;
  const Limits& limits_;
  KeepRows keep_;
  KeyedInput& input_;
  index_t row_ = 0;
  std::vector<double> numbered_;  // a row, and its number
};

/// Reads everything in one pass. Rows that count for no response are left out, unless there are
/// windows. Errors: InputError,
/// also if a column is missing, if shapes do not fit, or if a weight is not valid; those of
/// RowKeeper.
KeyedInput read_keyed_input(const SolveOptions& o, const Limits& limits, KeepRows keep);

}  // namespace qrtool
