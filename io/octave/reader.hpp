// SPDX-License-Identifier: Apache-2.0
// reader.hpp: reads a variable of a text file that Octave wrote (save -text, its default).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/read/reader.hpp"
#include "io/source/entry.hpp"

namespace qrtool::octave {

/// Opens the variable that `spec.dataset` names, or the only matrix of numbers. The numbers are
/// kept in a temporary file. The first two dimensions of an array are rows and columns; the others
/// are the batch, the last one first, as in Octave's HDF5 files. Errors: InputError, whose message
/// names file, line and column.
std::unique_ptr<Reader> open_variable(const InputSpec& spec);

/// Returns the variables of a file, as "/name". Errors: InputError.
std::vector<Entry> list_entries(const std::string& file);

}  // namespace qrtool::octave
