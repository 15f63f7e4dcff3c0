// SPDX-License-Identifier: Apache-2.0
// stored_numbers.hpp: reads all numbers of the report that lies beside the files of a set.
#pragma once

#include <string>
#include <vector>

#include "io/contents.hpp"

namespace qrtool {

/// Reads what out.report.json says about factors or solutions; nothing where there is no such file.
/// Errors: InputError where it is damaged.
std::vector<StoredOutput> read_json_output(const std::string& set);

/// Reads what out.report.csv says. `attributes`: what the files of the set record.
std::vector<StoredOutput> read_csv_output(const std::string& set, TextPairs attributes);

/// Returns the attributes in a JSON object, in its order, with numbers as text.
TextPairs attributes_in(std::string_view json);

}  // namespace qrtool
