// SPDX-License-Identifier: Apache-2.0
// utf8.cpp: which bytes are UTF-8, and Windows-1252 as UTF-8.
#include "core/utf8.hpp"

#include <array>

namespace qrtool {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (!follows(1) || !follows(2)) return 0;
  if (first == 0xe0) return second >= 0xa0 ? 3 : 0;
  if (first == 0xed) return second <= 0x9f ? 3 : 0;
  if (first > 0xe0 && first <= 0xef) return 3;
  if (!follows(3)) return 0;
  if (first == 0xf0) return second >= 0x90 ? 4 : 0;
  if (first == 0xf4) return second <= 0x8f ? 4 : 0;
  return first > 0xf0 && first < 0xf4 ? 4 : 0;
}

std::string as_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  if (at >= text.size()) return std::string(text);
  // The characters of 0x80 to 0x9f; those of 0xa0 to 0xff have the same numbers in Unicode.
  constexpr std::array<std::uint16_t, 32> windows{
      0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021, 0x2c6,  0x2030, 0x160,
      0x2039, 0x152,  0x8d,   0x17d,  0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
      0x2013, 0x2014, 0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
  std::string utf8;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const unsigned code = byte >= 0x80 && byte < 0xa0 ? windows[byte - 0x80U] : byte;
    if (code < 0x80) {
      utf8 += c;
    } else if (code < 0x800) {
      utf8 += static_cast<char>(0xc0U | code >> 6U);
      utf8 += static_cast<char>(0x80U | (code & 0x3fU));
    } else {
      utf8 += static_cast<char>(0xe0U | code >> 12U);
      utf8 += static_cast<char>(0x80U | (code >> 6U & 0x3fU));
      utf8 += static_cast<char>(0x80U | (code & 0x3fU));
    }
  }
  return utf8;
}

}  // namespace qrtool
