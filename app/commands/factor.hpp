// SPDX-License-Identifier: Apache-2.0
// factor.hpp: one run of `qrtool factor` by one process.
#pragma once

#include "app/options/options.hpp"
#include "app/run/factor_summary.hpp"
#include "app/run/stopwatch.hpp"
#include "core/problem.hpp"
#include "io/writer.hpp"

namespace qrtool {

/// Plans, factors, checks and writes what `input` holds. `watch` has run since the start of the
/// process. `shared`: the file of several datasets that gets the factors; null: they get a file of
/// their own. Errors: every class of core/error.hpp; nothing is left on disk.
FactorResult factor_input(const FactorOptions& options, Reader& input, const Limits& limits,
                          const Stopwatch& watch, OutputFile* shared = nullptr);

}  // namespace qrtool
