// SPDX-License-Identifier: Apache-2.0
// console.hpp: what goes to standard output (results) and to standard error (everything else).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace qrtool {

/// From now on nothing is written: another rank does it.
void silence_console();

/// A piece of the result. A failure to write is found by finish_stdout.
void write_stdout(std::string_view text);

/// A JSON document and a newline. Text that is no UTF-8 is replaced, not refused.
void write_json(const nlohmann::ordered_json& document);

/// Flushes. Errors: OutputError where anything written before did not arrive.
void finish_stdout();

/// Text as it is; failures are ignored, as there is nobody left to tell.
void write_stderr(std::string_view text);

/// `qrtool: message`, one line.
void print_message(std::string_view message);

/// `hint: action`, one line; nothing where `action` is empty.
void print_hint(std::string_view action);

}  // namespace qrtool
