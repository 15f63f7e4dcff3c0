// SPDX-License-Identifier: Apache-2.0
// source_notes.hpp: says how an input was read.
#pragma once

#include <string>
#include <vector>

#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {

/// Returns notes about data that were left out, and about guesses, for the user of a run that
/// succeeds.
std::vector<std::string> source_notes(const Source& source);
/// Prints these notes, one line each; with `with_order` also the note about a matrix whose order
/// only the user knows.
void print_source_notes(const Source& source, bool with_order = true);

/// Prints a note if float64 cannot represent an integer of the file. Call it after the last read.
void note_rounded(const Source& source);

/// A note for each attribute of HDF5 or netCDF that `output` records in another way, or does not
/// record, than it was applied to `source` now.
void print_other_reading(const std::string& output, const RecordedInput& recorded,
                         const Source& source);

/// Prints a note if a selection is empty. Python selects nothing without a word.
void note_empty_selection(const Source& source);

/// Returns how text was read, "delimiter comma, header yes", or an empty text for other formats.
std::string details_text(const Source& source);
/// Prints how text was read: separators, header, columns (--verbose).
void print_source_details(const Source& source);

}  // namespace qrtool
