// SPDX-License-Identifier: Apache-2.0
// reader.hpp: reads matrices from text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/factors/factor_set.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// The first line of a text that holds float32 values, each of which reads back to the same bits.
inline constexpr std::string_view csv_single_marker = "# float32";

class KeyedRows;

/// How a text is read.
struct CsvReading {
  bool as_stored = false;      // it holds factors, whose type and numbers are taken as they are
  bool is_one_table = false;   // a blank line within it is skipped
  std::size_t kept_bytes = 0;  // numbers up to so many bytes are kept, and parsed once
  // The most memory that a line and the columns may use. A line that needs more is a LimitError.
  std::size_t memory_bytes = SIZE_MAX;
  // For one table: the columns that are kept as text. `rows` gets every row as it is parsed.
  std::string keys = {};
  KeyedRows* rows = nullptr;
  bool remainders = false;               // InputSpec::remainders
  std::vector<std::string> needed = {};  // columns that the command needs
  bool only_needed = false;              // and no others; else all are read
  bool guesses_names = false;            // CsvOptions::names_row was found, and not stated
};

/// Opens text as float64 and checks all of it before any matrix is read. The reader takes over
/// `descriptor`, which can be read at any offset. Errors: InputError, whose message names file,
/// line and column and whose hint was tried on this text.
std::unique_ptr<Reader> open_csv(int descriptor, const std::string& name, const CsvOptions& options,
                                 const CsvReading& reading = {});

/// Opens a file of factors, whose checksums are NumberHashes. A first line csv_single_marker makes
/// the type float32. Errors: as open_csv; also if the file is no text.
FactorFile open_csv_factor(const std::string& path);

/// Checks that a file with the name of a text file is one. Errors: InputError.
void require_text_file(const std::string& file);

}  // namespace qrtool
