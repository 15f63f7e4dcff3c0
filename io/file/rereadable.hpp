// SPDX-License-Identifier: Apache-2.0
// rereadable.hpp: opens an input so that it can be read more than once, standard input too.
#pragma once

#include <string>
#include <string_view>

namespace qrtool {

/// The name of standard input in messages.
inline constexpr std::string_view standard_input = "standard input";

/// Whether an argument means standard input.
inline bool is_standard_input(const std::string& path) { return path == "-"; }

/// Opens a file, or for "-" a copy of standard input in a temporary file without a name. Returns a
/// descriptor that the caller must close and that can be read at any offset. Errors: InputError.
int open_rereadable(const std::string& path);

}  // namespace qrtool
