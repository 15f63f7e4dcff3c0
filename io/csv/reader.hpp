// SPDX-License-Identifier: Apache-2.0
// reader.hpp: reads matrices from text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/reader.hpp"

namespace qrtool {

/// The first line of a text whose numbers are float32 values, written so that reading them gives
/// the same bits.
inline constexpr std::string_view csv_single_marker = "# float32";

/// Opens a file, or standard input for "-", and checks the whole text before any matrix is read.
/// With `as_stored`, which is for factors, the marker above makes the type float32; otherwise it is
/// float64. Errors: InputError, whose message names file, line and column.
std::unique_ptr<Reader> open_csv(const std::string& path, bool as_stored);

}  // namespace qrtool
