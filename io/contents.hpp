// SPDX-License-Identifier: Apache-2.0
// contents.hpp: what a file holds, for users who ask: its datasets, and what an output of this tool
// says of how it was made and of its errors.
#pragma once

#include <string>
#include <vector>

#include "core/batch.hpp"
#include "io/csv_options.hpp"

namespace qrtool {

/// A dataset of a file.
struct Entry {
  std::string name;                // that chooses it, as in FILE:NAME
  std::vector<index_t> dims = {};  // as stored
  std::string stored_type = {};    // empty where it holds no numbers
  std::string problem = {};        // why it cannot be read as matrices; empty
  bool is_coordinates = false;     // of netCDF; it is read only where there is nothing else
};

/// Whether a file of this format may hold several datasets.
bool has_datasets(const std::string& file);

/// All datasets of a file of several, also those that hold no matrices. Errors: InputError where
/// the file cannot be read.
std::vector<Entry> list_entries(const std::string& file);

/// One column of the stored report: a number for each matrix or solution, NaN where none was
/// measured.
struct ReportNumbers {
  std::string name;                // "residual", "status", ...
  std::vector<index_t> dims = {};  // leading dimensions of the matrices or solutions
  std::vector<double> values = {};
  double bar = 0;  // the largest that passes; 0: not stored
};

/// What an output of this tool says about itself.
struct StoredOutput {
  std::string dataset = {};   // the one it was made from, in an output of several
  TextPairs attributes = {};  // as they are stored; numbers as text
  std::vector<ReportNumbers> report = {};

  const ReportNumbers* find(std::string_view name) const;
  std::string attribute(std::string_view name) const;  // empty: not stored
};

/// The outputs of this tool in the file, or in the set of files, that `path` names: one for each
/// dataset that was factored; none where another program wrote it. Errors: InputError where it
/// is damaged.
std::vector<StoredOutput> read_stored_outputs(const std::string& path);

/// The name of the set, such as out.npy, where `path` is one of its files (out.R.npy,
/// out.report.json), and `path` itself otherwise.
std::string set_of(const std::string& path);

}  // namespace qrtool
