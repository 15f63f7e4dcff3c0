// SPDX-License-Identifier: Apache-2.0
// row_keeper.hpp: takes rows with their keys, whatever they come from.
#pragma once

#include <span>
#include <string>

#include "app/solve/groups/keyed_input.hpp"

namespace qrtool {

/// First prepare(), then add() for every row.
class RowKeeper {
 public:
  RowKeeper(const SolveOptions& o, const Limits& limits, KeepRows keep, KeyedInput& input)
      : o_(o), limits_(limits), keep_(keep), input_(input) {}

  /// Takes which of the `width` numbers of a row are for what, and prepares the problem of a group.
  void prepare(const TableRoles& roles, index_t width);
  /// Takes the names of the output's columns, without that of --intercept. Errors: InputError where
  /// two columns would have one name.
  void name(std::vector<std::string> keys, const std::vector<std::string>& terms,
            std::vector<std::string> responses);
  /// Errors: InputError where a weight is none; LimitError where the keys take more than a quarter
  /// of the memory.
  void add(std::span<const std::string> keys, std::span<const double> numbers);

 private:
  void require_weight(double weight) const;
  void require_room_for_keys() const;

  const SolveOptions& o_;
  const Limits& limits_;
  KeepRows keep_;
  KeyedInput& input_;
  index_t row_ = 0;
};

}  // namespace qrtool
