// SPDX-License-Identifier: Apache-2.0
// key_table.cpp: a hash table whose texts lie in blocks that never move.
#include "app/solve/groups/key_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

constexpr std::size_t text_block_bytes = std::size_t{1} << 16;
constexpr std::size_t least_slots = 64;
constexpr std::uint32_t free_slot = UINT32_MAX;

}  // namespace

index_t KeyTable::group_of(std::span<const std::string> keys) {
  joined_.clear();
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (k > 0) joined_ += '\0';
    joined_ += keys[k];
  }
  if (last_ >= 0 && entries_[static_cast<std::size_t>(last_)].view() == joined_) return last_;
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>()(joined_));
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != free_slot; at = (at + 1) & (slots_.size() - 1)) {
    const Entry& entry = entries_[slots_[at]];
    if (entry.hash == hash && entry.view() == joined_) return last_ = slots_[at];
  }
  if (groups() == free_slot - 1) throw LimitError("more than 4,294,967,294 groups");
  last_ = groups();
  slots_[at] = static_cast<std::uint32_t>(last_);
  entries_.push_back({keep(joined_), static_cast<std::uint32_t>(joined_.size()), hash});
  const auto is_empty = [](const std::string& key) { return key.empty(); };
  with_empty_key_ += std::any_of(keys.begin(), keys.end(), is_empty);
  return last_;
}

std::vector<std::string_view> KeyTable::keys_of(index_t group) const {
  std::string_view text = entries_[static_cast<std::size_t>(group)].view();
  std::vector<std::string_view> keys;
  for (std::size_t end = text.find('\0'); end != std::string_view::npos; end = text.find('\0')) {
    keys.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  keys.push_back(text);
  return keys;
}

std::vector<std::string> KeyTable::same_number() const {
  constexpr index_t most_groups = 1000000;
  const index_t count = std::min(groups(), most_groups);
  const std::size_t columns = count == 0 ? 0 : keys_of(0).size();
  for (std::size_t k = 0; k < columns; ++k) {
    std::vector<std::pair<double, std::string>> numbers;
    for (index_t group = 0; group < count; ++group) {
      const std::string_view key = keys_of(group)[k];
      double value = 0;
      if (parse_number(key, value) == Parsed::number && !std::isnan(value))
        numbers.emplace_back(value, key);
    }
    std::ranges::sort(numbers);
    const auto found = std::ranges::adjacent_find(numbers, [](const auto& one, const auto& next) {
      return one.first == next.first && one.second != next.second;
    });
    if (found != numbers.end()) return {found->second, std::next(found)->second};
  }
  return {};
}

std::size_t KeyTable::bytes() const {
  // While a vector grows, the old one is there as well.
  return text_bytes_ +
         (entries_.capacity() * sizeof(Entry) + slots_.capacity() * sizeof(slots_[0])) * 3 / 2;
}

const char* KeyTable::keep(std::string_view text) {
  if (blocks_.empty() || text.size() > block_left_) {
    block_left_ = std::max(text_block_bytes, text.size());
    blocks_.push_back(std::make_unique<char[]>(block_left_));
    text_bytes_ += block_left_;
    // The block is filled from its end, so that one number tells how much is left.
  }
  block_left_ -= text.size();
  char* const place = blocks_.back().get() + block_left_;
  std::memcpy(place, text.data(), text.size());
  return place;
}

void KeyTable::grow() {
  slots_.assign(std::max(least_slots, 2 * slots_.size()), free_slot);
  for (std::size_t group = 0; group < entries_.size(); ++group) {
    std::size_t at = entries_[group].hash & (slots_.size() - 1);
    while (slots_[at] != free_slot) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = static_cast<std::uint32_t>(group);
  }
}

}  // namespace qrtool
