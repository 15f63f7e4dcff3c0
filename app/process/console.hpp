// SPDX-License-Identifier: Apache-2.0
// console.hpp: writes results to standard output and everything else to standard error.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace qrtool {

/// Stops all output of this process. Ranks other than 0 call it.
void silence_console();

/// Makes results go to standard error from now on, since standard output belongs to the factors.
void keep_stdout_free();

/// Writes a piece of the result. finish_stdout() finds a failed write.
void write_stdout(std::string_view text);

/// Writes a JSON document and a newline. It replaces bytes that are not UTF-8.
void write_json(const nlohmann::ordered_json& document);

/// Flushes standard output. Errors: OutputError if any write has failed.
void finish_stdout();

/// Whether a stream is a terminal that takes control characters. That of a rank of MPI, which
/// mpirun writes elsewhere, is none.
bool is_terminal(int stream);

/// Writes the text unchanged. It ignores failures, since no stream is left to report them.
void write_stderr(std::string_view text);

/// Shows a line on the terminal of standard error, as long as the terminal is wide, in place of the
/// line before. What is written next removes it; an empty text does nothing else.
void show_line(std::string_view line);

/// Writes one line: `qrtool: message`.
void print_message(std::string_view message);
/// Prints a failure, which is red on a terminal.
void print_failure(std::string_view message);

/// Returns the text, in red if standard output is a terminal with colours. The environment variable
/// NO_COLOR forbids them.
std::string in_red(std::string_view text);

/// Appends everything that is printed from now on, except progress lines, to a file, each line with
/// the time. `command` is the first line. Errors: OutputError if the file cannot be written;
/// UsageError if it holds other lines than a log's.
void open_log(const std::string& path, const std::string& command);
/// Writes the last line of the log, if there is one.
void close_log(int exit_code);
/// Ends the log. Errors: OutputError if a line of it could not be written.
void finish_log();

/// Writes one line, `hint: action`, unless `action` is empty.
void print_hint(std::string_view action);

}  // namespace qrtool
