// SPDX-License-Identifier: Apache-2.0
// key_table.hpp: numbers the keys of a table's rows in the order of their first appearance.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// Groups and their keys, one text or several for each group. Rows belong to the same group if all
/// of their texts are equal.
class KeyTable {
 public:
  /// Returns the group of these keys, which is created if they are new. Errors: LimitError for more
  /// than 2^32 - 2 groups.
  index_t group_of(std::span<const std::string> keys);

  index_t groups() const { return static_cast<index_t>(entries_.size()); }
  std::vector<std::string_view> keys_of(index_t group) const;
  /// Returns the number of groups one of whose keys is the empty text.
  index_t with_empty_key() const { return with_empty_key_; }
  /// Returns two texts of one column of keys that are the same number, as 1 and 01; empty if there
  /// are none among the first million groups.
  std::vector<std::string> same_number() const;
  /// Returns the most memory that it has used.
  std::size_t bytes() const;

 private:
  struct Entry {
    const char* text;  // all keys, with a NUL between two, which no text of a table holds
    std::uint32_t size, hash;
    std::string_view view() const { return {text, size}; }
  };
  const char* keep(std::string_view text);
  void grow();

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // a hash table of groups by open addressing
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0, text_bytes_ = 0;
  index_t last_ = -1;  // the group of the row before: tables are often sorted
  index_t with_empty_key_ = 0;
  std::string joined_;
};

}  // namespace qrtool
