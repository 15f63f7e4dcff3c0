// SPDX-License-Identifier: Apache-2.0
// describe.hpp: the options of the commands, as the parser of a line and its help know them.
#pragma once

#include "app/cli/command_line.hpp"
#include "app/options/options.hpp"

namespace qrtool {

/// Adds the options of a command to `line`, which fills `options` in. `Options` says which command
/// it is.
template <class Options>
void describe_options(CommandLine& line, Options& options);

}  // namespace qrtool
