// SPDX-License-Identifier: Apache-2.0
// stored_output.hpp: what an output of this tool says about itself, and how it is read from the
// report beside the files of a set.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "io/source/csv_options.hpp"

namespace qrtool {

/// One column of a stored report: a number for each matrix or solution, or NaN if it was not
/// measured.
struct ReportNumbers {
  std::string name;                // "residual", "status", ...
  std::vector<index_t> dims = {};  // leading dimensions of the matrices or solutions
  std::vector<double> values = {};
  double bar = 0;  // the largest that passes; 0: not stored
};

/// The attributes and the report of an output of this tool.
struct StoredOutput {
  std::string dataset = {};   // the one it was made from, in an output of several
  TextPairs attributes = {};  // as they are stored; numbers as text
  std::vector<ReportNumbers> report = {};

  const ReportNumbers* find(std::string_view name) const;
  std::string attribute(std::string_view name) const;  // empty: not stored
};

/// Reads out.report.json of factors or solutions. Returns nothing if the file does not exist.
/// Errors: InputError if it is damaged.
std::vector<StoredOutput> read_json_output(const std::string& set);

/// Reads out.report.csv. `attributes`: the attributes that the files of the set record.
std::vector<StoredOutput> read_csv_output(const std::string& set, TextPairs attributes);

/// Returns the attributes in a JSON object, in its order, with numbers as text.
TextPairs attributes_in(std::string_view json);

}  // namespace qrtool
