// SPDX-License-Identifier: Apache-2.0
// contents.hpp: lists the contents of a file for users: its datasets, and what an output of this
// tool says of how it was made and of its errors.
#pragma once

#include <string>
#include <vector>

#include "io/report/stored_output.hpp"
#include "io/source/entry.hpp"

namespace qrtool {

/// Whether a file of this format may hold several datasets.
bool has_datasets(const std::string& file);

/// Lists all datasets of a file that can hold several, including those that are no matrices.
/// Errors: InputError if the file cannot be read.
std::vector<Entry> list_entries(const std::string& file);

/// Returns the names of the matrices of a file that a pattern stands for: * for any text, ? for one
/// character. Errors: InputError if there is none, or if the file holds no datasets.
std::vector<std::string> datasets_like(const std::string& file, const std::string& pattern);

/// Returns the outputs of this tool in the file or set of files that `path` names: one for each
/// dataset that was factored, or none if another program wrote it. Errors: InputError if it is
/// damaged.
std::vector<StoredOutput> read_stored_outputs(const std::string& path);

/// Returns the name of the set, such as out.npy, if `path` is one of its files (out.R.npy,
/// out.report.json), else `path` itself.
std::string set_of(const std::string& path);

}  // namespace qrtool
