// SPDX-License-Identifier: Apache-2.0
// reader.hpp: matrices from text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/reader.hpp"

namespace qrtool {

/// The first line of a text whose numbers are float32 written so that they read back as they were.
inline constexpr std::string_view csv_single_marker = "# float32";

/// A file, or "-" for standard input. The whole text is checked before anything is read from it.
/// `as_stored`: the marker above makes the type float32 (factors); otherwise text is float64.
/// Errors: InputError, which names file, line and column.
std::unique_ptr<Reader> open_csv(const std::string& path, bool as_stored);

}  // namespace qrtool
