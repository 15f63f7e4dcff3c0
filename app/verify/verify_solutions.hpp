// SPDX-License-Identifier: Apache-2.0
// verify_solutions.hpp: the part of `qrtool verify` that takes three files.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// options.input is A, or a table; options.factors is B; options.solutions holds X.
ExitCode verify_solutions(const VerifyOptions& options);

}  // namespace qrtool
