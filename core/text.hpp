// SPDX-License-Identifier: Apache-2.0
// text.hpp: how sizes, shapes and foreign names are written in messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/batch.hpp"

namespace qrtool {

/// A name or text from a file or the command line, safe for a terminal: control bytes become \xNN.
std::string escape(std::string_view text);

/// "512 B", "1.4 KiB", "2.0 GiB": three significant digits, binary units.
std::string format_bytes(std::uint64_t bytes);

/// "2x3x64x64".
std::string format_shape(std::span<const index_t> leading, index_t rows, index_t cols);

/// "15,000".
std::string format_count(index_t count);

/// "0.35 ms", "12.4 s".
std::string format_seconds(double seconds);

/// The candidate that `word` may have been meant for, or empty: one that differs by case or by at
/// most 2 edits (1 in four letters, none in fewer); or else the first that holds it, with three
/// letters or more.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace qrtool
