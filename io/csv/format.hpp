// SPDX-License-Identifier: Apache-2.0
// format.hpp: CSV in the list of formats.
#pragma once

#include "io/format.hpp"

namespace qrtool {

/// The format of text with the ending .csv, .tsv or .txt, and of standard input.
extern const Format csv_format;

}  // namespace qrtool
