// SPDX-License-Identifier: Apache-2.0
// comments.hpp: what text says of its making, in the comments at the beginning of the last file of
// a set. There is no other place for it beside text in columns.
#pragma once

#include <string>
#include <vector>

#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Returns these comments, one per line: how the input was read and, for solutions, the options
/// that `verify` needs.
std::string csv_comments(const OutputSpec& spec);

/// Returns how the input was read, or an empty record if the file has no such comments.
RecordedInput read_csv_recorded_input(const std::string& path);
/// Does recorded_attributes() (io/open/factors.hpp) for solutions: reads their attributes from
/// comments.
std::vector<std::string> read_csv_attributes(const std::string& path,
                                             const std::vector<const char*>& names);
/// Returns all names and values that these comments hold.
TextPairs csv_attributes(const std::string& path);

}  // namespace qrtool
