// SPDX-License-Identifier: Apache-2.0
// checks.hpp: options that do not go together.
#pragma once

#include "app/options/options.hpp"

namespace qrtool {

/// Refuses options that contradict each other, and moves the files of a line with --response to the
/// members that they belong to. `Options` is the struct of the command. Errors: UsageError.
template <class Options>
void check_options(Options& options);

}  // namespace qrtool
