// SPDX-License-Identifier: Apache-2.0
// console.hpp: writes results to standard output and everything else to standard error.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace qrtool {

/// Writes nothing from now on. The ranks other than 0 call it.
void silence_console();

/// Makes results go to standard error from now on, since standard output belongs to the factors.
void keep_stdout_free();

/// Writes a piece of the result. finish_stdout() finds a failed write.
void write_stdout(std::string_view text);

/// Writes a JSON document and a newline. It replaces bytes that are not UTF-8.
void write_json(const nlohmann::ordered_json& document);

/// Flushes standard output. Errors: OutputError where any write has failed.
void finish_stdout();

/// Writes the text as it is. It ignores failures, as no stream is left that could report them.
void write_stderr(std::string_view text);

/// Writes one line: `qrtool: message`.
void print_message(std::string_view message);
/// Prints a failure, which is red on a terminal.
void print_failure(std::string_view message);

/// The text, red where standard output is a terminal that shows colours. The environment variable
/// NO_COLOR forbids them.
std::string in_red(std::string_view text);

/// Appends what is printed from now on, but no progress lines, to a file, each line with the time.
/// `command` is its first line. Errors: OutputError where the file cannot be written; UsageError
/// where it holds something else than such lines.
void open_log(const std::string& path, const std::string& command);
/// Writes the last line of the log, where there is one.
void close_log(int exit_code);
/// Ends the log. Errors: OutputError where a line of it could not be written.
void finish_log();

/// Writes one line, `hint: action`; nothing where `action` is empty.
void print_hint(std::string_view action);

}  // namespace qrtool
