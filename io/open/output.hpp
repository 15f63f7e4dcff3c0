// SPDX-License-Identifier: Apache-2.0
// output.hpp: creates outputs by the ending of their name, and checks names before any work.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/write/writer.hpp"

namespace qrtool {

/// Creates the temporary file and reserves its space. The endings .csv, .tsv and .txt give CSV, and
/// "-" gives CSV on standard output, for one dataset; every other name gives HDF5. Errors:
/// OutputError if the output exists without `force`, cannot be created, or does not fit on the
/// disk; the message states the bytes needed and free.
std::unique_ptr<Writer> create_output(const OutputSpec& spec);

/// Returns the bytes that the writer of this output allocates, without the arrays that the caller
/// passes.
std::size_t output_workspace_bytes(const OutputSpec& spec);

/// Creates the temporary file with the path and the attributes of `root`, and reserves space for
/// all planned datasets. Errors: UsageError if the format holds only one dataset; else as
/// create_output().
std::unique_ptr<OutputFile> create_output_file(const OutputSpec& root,
                                               std::span<const OutputSpec> planned);

/// Refuses an output that is also the input. Errors: UsageError if `output`, or another file that
/// would be written with it, is the same file as `input`, also through links.
void refuse_same_file(const std::string& input, const std::string& output);

/// Refuses a report (--report) that would replace a file of the factors in `factors`. Errors:
/// UsageError, also if its name ends neither in .csv nor in .json.
void check_report_name(const std::string& factors, const std::string& report);

/// Refuses to replace a file of this name. Errors: OutputError.
void refuse_existing(const std::string& name);

/// Checks the names of a run before any work. Errors: UsageError if the ending of `output` belongs
/// to another format, or if it names a dataset in a file; OutputError if the run would replace or
/// remove an existing file and `force` is not given. `report` may be empty.
void check_output_names(const std::string& output, const std::string& report, bool force);
/// The same of the files that a table of coefficients (OutputSpec::coefficients) would be.
void check_table_names(const std::string& output, bool force);

}  // namespace qrtool
