// SPDX-License-Identifier: Apache-2.0
// text.cpp: formats values for messages and finds the nearest word.
#include "core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <vector>

#include "core/utf8.hpp"

namespace qrtool {
namespace {

/// Whether a character steers a terminal: U+0000..U+001f, U+007f, or U+0080..U+009f (C1).
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control(character)) {
      out += character;
    } else {
      for (const char c : character) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, units[unit]);
}

std::string format_shape(std::span<const index_t> leading, index_t rows, index_t cols) {
  std::string out;
  for (const index_t extent : leading) out += fmt::format("{}x", extent);
  return out + fmt::format("{}x{}", rows, cols);
}

std::string format_count(index_t count) {
  std::string digits = std::to_string(count);
  const index_t first = digits.starts_with('-') ? 1 : 0;
  for (index_t i = std::ssize(digits) - 3; i > first; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return digits;
}

std::string format_seconds(double seconds) {
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 99.95) return fmt::format("{:.3g} s", seconds);
  return fmt::format("{:.0f} s", seconds);
}

namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// Returns the Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty()) return {};
  const std::string lower = lower_case(word);
  std::string_view best;
  std::size_t best_distance = word.size() < 4 ? 1 : word.size() == 4 ? 2 : 3;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(lower, lower_case(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || word.size() < 3) return best;
  for (const std::string_view candidate : candidates) {
    if (lower_case(candidate).find(lower) != std::string::npos) return candidate;
  }
  return {};
}

}  // namespace qrtool
