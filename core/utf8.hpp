// SPDX-License-Identifier: Apache-2.0
// utf8.hpp: text whose encoding is not known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qrtool {

/// Returns the bytes of the UTF-8 character that `text` begins with; 0 where it begins with none.
/// Source: Unicode 15, table 3-7.
std::size_t utf8_length(std::string_view text);

/// Returns a text as UTF-8: as it is if it is UTF-8, else as its bytes mean in Windows-1252, which
/// holds Latin-1.
std::string as_utf8(std::string_view text);

}  // namespace qrtool
