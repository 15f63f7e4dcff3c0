// SPDX-License-Identifier: Apache-2.0
// coefficients.hpp: the solutions of a table as one file of text, which pandas and R read as it is.
//
//   term,x,se,t,p               with several responses: response,term,x,...
//   (intercept),-3.482,0.89,-3.91,0.0035
//
// What `verify` must know, and the report, are in out.report.json beside out.csv.
#pragma once

#include <memory>
#include <string>

#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Does create_output for a spec with coefficients. NaN is written as R and pandas know it. "-" is
/// standard output, without a report. Errors: OutputError.
std::unique_ptr<Writer> create_coefficients(const OutputSpec& spec);

/// Whether a file begins with the header of such a table.
bool begins_as_coefficients(const std::string& path);

/// Whether a file is such a table and has its report beside it.
bool is_coefficient_table(const std::string& path);

/// Reads X (terms x responses) from such a table. Errors: InputError.
std::unique_ptr<Reader> open_coefficients(const std::string& path);
/// Reads the standard errors in the same layout. Returns null if the table has no such column.
/// Errors: InputError.
std::unique_ptr<Reader> open_standard_errors(const std::string& path);

}  // namespace qrtool
