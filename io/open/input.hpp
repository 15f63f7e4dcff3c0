// SPDX-License-Identifier: Apache-2.0
// input.hpp: opens a file of matrices or numbers, whatever its format.
#pragma once

#include <memory>
#include <string>

#include "io/read/reader.hpp"

namespace qrtool {

/// Opens a file of matrices. The ending of the name says whether it is HDF5 or CSV, and the content
/// must agree. Errors: InputError, LimitError, before any memory for matrices is allocated.
std::unique_ptr<Reader> open_input(const InputSpec& spec);

/// Opens numbers of any shape, as right sides or solutions have it, in their stored order. An
/// array of one dimension is read as m x 1 or 1 x m. Errors: as open_input.
std::unique_ptr<Reader> open_array(const InputSpec& spec);

/// Whether an input is text, for which CsvOptions are meant. Errors: InputError if it cannot be
/// read.
bool takes_csv_options(const std::string& path);
/// Whether an input is HDF5: InputSpec::order and raw_values mean something for it. Errors: as
/// above.
bool takes_order(const std::string& path);
/// Throws a UsageError, which says that an input of another format has no raw values.
[[noreturn]] void refuse_raw_values(const std::string& path);

}  // namespace qrtool
