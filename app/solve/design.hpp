// SPDX-License-Identifier: Apache-2.0
// design.hpp: A made of vectors, of powers of columns and of a column of ones.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/options.hpp"
#include "io/read/column_reader.hpp"

namespace qrtool {

/// A column and the highest of its powers.
struct Polynomial {
  std::string column;
  int degree = 1;
};

/// Returns the items of --polynomial. Errors: UsageError if the text is no such list.
std::vector<Polynomial> parse_polynomial(std::string_view text);

/// Refuses powers of vectors of the file if --a does not make A of vectors. Errors: InputError,
/// UsageError.
void refuse_vectors_without_a(const std::string& path, const std::string& polynomial);

/// The columns of A with their powers, and their names.
struct Design {
  std::vector<ColumnPower> columns;
  std::vector<std::string> names;  // empty: the columns have none
};

/// Adds powers to the columns of a matrix. An option names a column by its name (no names: empty)
/// or by its number, from 1, which for a table is its number in the file. Errors: InputError if
/// there is no such column; `file` begins the message.
Design design_of(const SystemOptions& options, const std::vector<std::string>& names,
                 const std::vector<index_t>& numbers, const std::string& file);

/// Reads the arrays of one dimension that --a names in a file, side by side. Errors: InputError if
/// one has another number of entries, or more dimensions.
std::unique_ptr<Reader> open_vectors(const std::string& file, const std::string& list,
                                     const InputSpec& spec);

}  // namespace qrtool
