// SPDX-License-Identifier: Apache-2.0
// factors.hpp: finds the text files that factors are stored in, and checks that they belong
// together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/reader.hpp"

namespace qrtool {

/// Returns the first `most` checksums that a report in CSV records, or nothing where it has no such
/// column.
std::optional<std::vector<std::uint64_t>> read_csv_checksums(const std::string& report,
                                                             std::size_t most = SIZE_MAX);

/// Opens out.Q.csv, out.R.csv, ... for out.csv. Where out.report.csv has the column `checksum`, the
/// factors must have these checksums. Errors: InputError, also where files of different runs lie
/// beside each other.
StoredFactors open_csv_factors(const std::string& path);

/// Returns how the input was read, from the comments at the beginning of the last file of the set,
/// or nothing where these comments are not there.
RecordedInput read_csv_recorded_input(const std::string& path);
/// Does recorded_attributes (io/reader.hpp): what the comments say of solutions.
std::vector<std::string> read_csv_attributes(const std::string& path,
                                             const std::vector<const char*>& names);
/// All that these comments say.
TextPairs csv_attributes(const std::string& path);

}  // namespace qrtool
