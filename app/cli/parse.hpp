// SPDX-License-Identifier: Apache-2.0
// parse.hpp: a command line becomes a command with its options.
#pragma once

#include <string>
#include <variant>

#include "app/options/options.hpp"

namespace qrtool {

struct HelpRequest {
  std::string text;
  bool was_asked = true;  // false: bare `qrtool`, a usage error
};

struct VersionRequest {
  bool json = false;
};

using Command = std::variant<FactorOptions, SolveOptions, AppendOptions, ApplyOptions,
                             VerifyOptions, GenerateOptions, DevicesOptions, InfoOptions,
                             BenchOptions, HelpRequest, VersionRequest>;

/// The program names itself by argv[0]. Errors: UsageError, in the words of this tool.
Command parse_command_line(int argc, const char* const* argv);

/// Whether the line has --json, even if the rest of it is wrong.
bool asks_for_json(int argc, const char* const* argv);

}  // namespace qrtool
