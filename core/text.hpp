// SPDX-License-Identifier: Apache-2.0
// text.hpp: writes sizes, shapes and names from files for messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/batch.hpp"

namespace qrtool {

/// Makes text from a file or the command line safe for a terminal: the bytes of control characters,
/// and those that are no UTF-8, become \xNN.
std::string escape(std::string_view text);

/// Formats bytes with three significant digits and binary units: "512 B", "1.4 KiB", "2.0 GiB".
std::string format_bytes(std::uint64_t bytes);

/// Returns "2x3x64x64".
std::string format_shape(std::span<const index_t> leading, index_t rows, index_t cols);

/// Returns "15,000".
std::string format_count(index_t count);

/// Formats seconds: "0.35 ms", "12.4 s".
std::string format_seconds(double seconds);

/// Returns the candidate that the user may have meant by `word`, or nothing. Upper and lower case
/// are equal. The candidate with the fewest edits is taken: at most 2 edits, 1 for a word of four
/// letters, none for shorter words. If there is none, and `word` has three letters or more, the
/// first candidate that contains it is taken.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// FNV-1a, 64 bits. Another start than the usual one gives another hash.
constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace qrtool
