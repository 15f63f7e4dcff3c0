// SPDX-License-Identifier: Apache-2.0
// guide.hpp: finds out which of the ways out of a refused text lead on, by reading the text so.
#pragma once

#include <string>

#include "io/csv/parser/way_out.hpp"
#include "io/csv/reader.hpp"

namespace qrtool {

/// Returns hints that make the text readable in the fewest steps, each of which may need further
/// hints. Returns an empty text if there are none. The text in `descriptor` is read 1 MiB beyond
/// the refused line, but at most 64 MiB in all.
std::string hint_that_leads_on(const CsvRefusal& refusal, int descriptor, const std::string& name,
                               const CsvReading& reading);

/// Returns the line of names where lines above it, or units below it, are why the text was refused,
/// and no line that is left out then looks like a row; else 0. Parameters as hint_that_leads_on().
index_t line_of_names(const CsvRefusal& refusal, int descriptor, const std::string& name,
                      const CsvOptions& options, const CsvReading& reading);

/// Whether a file can be read as a table, perhaps after hints, although its name does not say so.
bool reads_as_table(const std::string& path);

/// The parts of a shell command before and after the name of a file whose text it prints.
struct ShellInput {
  std::string before, behind;  // "", " < x.csv"; or "gunzip < x.csv.gz | ", ""
};
ShellInput shell_input(const std::string& name);

/// The options and changes with which a text is read as a trial.
struct Trial {
  TextChange change = {};
  bool looks_for_numbers = false;  // and refuses no field
  std::uint64_t end = UINT64_MAX;  // a line that begins here or later is not read
};

struct TrialResult {
  Table table;
  std::vector<bool> are_numbers;  // where it looks for them: CsvParser::columns_of_numbers()
};

/// Reads a text without passing rows on, and closes `descriptor`. Errors: as open_csv, except that
/// a CsvRefusal has no hint.
TrialResult try_csv(int descriptor, const std::string& name, const CsvOptions& options,
                    CsvReading reading, const Trial& trial);

}  // namespace qrtool
