// SPDX-License-Identifier: Apache-2.0
// factor.hpp: runs of `qrtool factor` by one process.
#pragma once

#include <memory>

#include "app/factor/factor_summary.hpp"
#include "app/options/options.hpp"
#include "app/process/laps.hpp"
#include "core/backend/backend.hpp"
#include "core/error.hpp"
#include "core/problem/problem.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Plans, factors, checks and writes the matrices of `input`. `laps` began with the process, or
/// with the work on this input. `shared`: the file of several datasets that gets the factors; null:
/// they get their own file. `kept`: the backend of the run before, in which this run leaves its
/// own; null: no run follows. Errors: every class of core/error.hpp; nothing is left on disk.
FactorResult factor_input(const FactorOptions& options, Reader& input, const Limits& limits,
                          Laps& laps, OutputFile* shared = nullptr,
                          std::shared_ptr<Backend>* kept = nullptr);

/// Several --dataset: one run, one output. Factors one dataset after another. Datasets that fail
/// are left out of the output, and the highest exit code is returned. Errors: UsageError for
/// options that one run cannot obey for several datasets; OutputError.
ExitCode factor_several(const FactorOptions& options);

}  // namespace qrtool
