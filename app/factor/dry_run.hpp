// SPDX-License-Identifier: Apache-2.0
// dry_run.hpp: `qrtool factor --dry-run`.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Opens the input, plans and says what the run would need and take. Errors: those that the run
/// would have before its first matrix, but for a full disk, which is a part of the answer.
ExitCode dry_run_factor(const FactorOptions& options);

}  // namespace qrtool
