// SPDX-License-Identifier: Apache-2.0
// stored_numbers.hpp: reads all numbers of the report that lies beside the files of a set.
#pragma once

#include <string>
#include <vector>

#include "io/contents.hpp"

namespace qrtool {

/// What out.report.json says, of factors or of solutions; nothing where there is no such file.
/// Errors: InputError where it is damaged.
std::vector<StoredOutput> read_json_output(const std::string& set);

/// The same for out.report.csv. `attributes`: what the files of the set record.
std::vector<StoredOutput> read_csv_output(const std::string& set, TextPairs attributes);

/// The attributes in a JSON object, in its order; numbers as text.
TextPairs attributes_in(std::string_view json);

}  // namespace qrtool
