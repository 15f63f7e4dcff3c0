// SPDX-License-Identifier: Apache-2.0
// reader.hpp: reads a dense matrix from a Matrix Market file.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/factors/factor_set.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// The second line of a file that holds float32 values, each of which reads back to the same bits.
inline constexpr std::string_view mtx_single_marker = "% float32";

/// Reads the whole text once, strictly: one number per line, as many as the sizes say, and nothing
/// after them. The numbers are kept in a temporary file, column by column, and are read from there.
/// The reader takes over `descriptor`, which can be read at any offset. With `as_stored` the type
/// may be float32. A line may use `memory_bytes`. Errors: InputError, whose message names file,
/// line and column, also if the matrix is sparse or a pattern; LimitError.
std::unique_ptr<Reader> open_mtx(int descriptor, const std::string& name,
                                 std::size_t memory_bytes = SIZE_MAX, bool as_stored = false);

/// Opens a file of factors, whose checksum is number_hash_of(). Errors: InputError, also if the
/// file has another format.
FactorFile open_mtx_factor(const std::string& path);

}  // namespace qrtool
