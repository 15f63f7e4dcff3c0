// SPDX-License-Identifier: Apache-2.0
// guide.hpp: finds out which of the ways out of a refused text lead on, by reading the text so.
#pragma once

#include <string>

#include "io/csv/parser/way_out.hpp"
#include "io/csv/reader.hpp"

namespace qrtool {

/// The hints of the list of ways that leads on in the fewest steps, perhaps by further hints; empty
/// where none does. The text in `descriptor` is read as far as the refused reader came, and 1 MiB
/// further, but at most 64 MiB.
std::string hint_that_leads_on(const CsvRefusal& refusal, int descriptor, const std::string& name,
                               const CsvReading& reading);

/// Whether a file whose name does not say so can be read as a table, perhaps by following a hint.
bool reads_as_table(const std::string& path);

/// How a command of the shell gets the text of a file: what stands before it, and behind it.
struct ShellInput {
  std::string before, behind;  // "", " < x.csv"; or "gunzip < x.csv.gz | ", ""
};
ShellInput shell_input(const std::string& name);

/// How a text is read as a trial.
struct Trial {
  TextChange change = {};
  bool looks_for_numbers = false;  // and refuses no field
  std::uint64_t end = UINT64_MAX;  // a line that begins here or later is not read
};

struct TrialResult {
  Table table;
  std::vector<bool> are_numbers;  // where it looks for them: CsvParser::columns_of_numbers()
};

/// Reads a text without passing rows on, and closes `descriptor`. Errors: as open_csv, but its
/// CsvRefusal has no hint.
TrialResult try_csv(int descriptor, const std::string& name, const CsvOptions& options,
                    CsvReading reading, const Trial& trial);

}  // namespace qrtool
