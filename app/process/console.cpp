// SPDX-License-Identifier: Apache-2.0
// console.cpp: writes to the standard streams; a failed write throws only at the end.
#include "app/process/console.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"

namespace qrtool {

namespace {
bool is_silent = false, is_stdout_free = false;
}

void silence_console() { is_silent = true; }
void keep_stdout_free() { is_stdout_free = true; }

void write_stdout(std::string_view text) {
  if (!is_silent) std::fwrite(text.data(), 1, text.size(), is_stdout_free ? stderr : stdout);
}

void write_json(const nlohmann::ordered_json& document) {
  write_stdout(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
               "\n");
}

void finish_stdout() {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 || failed_before)
    throw OutputError("cannot write to standard output");
}

void write_stderr(std::string_view text) {
  if (!is_silent) std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_message(std::string_view message) { write_stderr(fmt::format("qrtool: {}\n", message)); }

void print_hint(std::string_view action) {
  if (!action.empty()) write_stderr(fmt::format("hint: {}\n", action));
}

}  // namespace qrtool
