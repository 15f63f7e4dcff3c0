// SPDX-License-Identifier: Apache-2.0
// source_notes.hpp: says how an input was read.
#pragma once

#include "io/reader.hpp"

namespace qrtool {

/// Prints what the user should know even where all went well: what was left out, what was guessed.
void print_source_notes(const Source& source);

/// Prints how text was read: separators, header, columns (--verbose).
void print_source_details(const Source& source);

}  // namespace qrtool
