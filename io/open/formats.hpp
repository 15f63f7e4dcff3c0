// SPDX-License-Identifier: Apache-2.0
// formats.hpp: the list of all formats, and the choice of one.
#pragma once

#include <span>
#include <string>

#include "io/format.hpp"

namespace qrtool {

/// Returns the formats in the order in which they are asked. The last one accepts every name and
/// every content.
std::span<const Format* const> formats();

/// Returns the format of an input file, or of standard input for "-". Errors: InputError if there
/// is no readable file of this name.
const Format& format_of_input(const std::string& file);

/// Returns the format of an output, from the ending of its name.
const Format& format_of_output(const std::string& path);

}  // namespace qrtool
