// SPDX-License-Identifier: Apache-2.0
// column_reader.hpp: columns of the matrices of another reader, and powers of them.
#pragma once

#include <memory>
#include <vector>

#include "io/read/reader.hpp"

namespace qrtool {

/// A column of another reader's matrices, whose entries are raised to a power.
struct ColumnPower {
  index_t column = 0;
  int power = 1;
};

/// Reads chosen columns of each matrix of another reader, after a column of ones if `has_ones`.
/// Several such readers may share one reader in one thread.
std::unique_ptr<Reader> read_columns(std::shared_ptr<Reader> reader, std::vector<index_t> columns,
                                     bool has_ones);

/// As read_columns, with entries raised to powers.
std::unique_ptr<Reader> read_powers(std::shared_ptr<Reader> reader,
                                    std::vector<ColumnPower> columns, bool has_ones);

/// As read_columns with all columns. If `skips_missing`, a row that holds NaN becomes zeros. Both
/// are in Source::details.
std::unique_ptr<Reader> read_completed(std::shared_ptr<Reader> reader, bool has_ones,
                                       bool skips_missing);

}  // namespace qrtool
