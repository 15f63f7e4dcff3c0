// SPDX-License-Identifier: Apache-2.0
// factor_several.hpp: `qrtool factor` with several --dataset: one run, one output.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Factors one dataset after another. Those that fail are left out of the output, and the highest
/// exit code is returned. Errors: UsageError for what one run cannot do on several datasets;
/// OutputError.
ExitCode factor_several(const FactorOptions& options);

}  // namespace qrtool
