// SPDX-License-Identifier: Apache-2.0
// factor_into.hpp: `qrtool factor` with --into: several inputs, one output for each.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Factors one input after another and returns the highest exit code. A device is started once.
/// Errors: as run_into().
ExitCode factor_into(const FactorOptions& options);

}  // namespace qrtool
