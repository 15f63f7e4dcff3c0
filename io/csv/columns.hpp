// SPDX-License-Identifier: Apache-2.0
// columns.hpp: the columns that --columns names.
#pragma once

#include <string>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// Errors: UsageError where the list cannot mean columns of any file.
void check_columns(const std::string& list);

/// Whether the list chooses one of these columns by its name.
bool chooses_by_name(const std::string& list, const std::vector<std::string>& names);

/// The columns, from 0, in the order of the list. `names` are those of the header, or empty;
/// `place` begins a message, "file:line:1: ". Errors: InputError where the file has no such column,
/// or UsageError where one is named twice.
std::vector<index_t> choose_columns(const std::string& list, const std::vector<std::string>& names,
                                    index_t width, const std::string& place);

}  // namespace qrtool
