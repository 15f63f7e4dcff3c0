// SPDX-License-Identifier: Apache-2.0
// commands.hpp: one function per command; each prints its result and says how it went.
#pragma once

#include "app/cli/options.hpp"
#include "core/comm.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Errors: every class of core/error.hpp. Nothing is left on disk then, apart from a complete
/// output where standard output failed after the work was done.
/// Every rank of `comm` calls it.
ExitCode run_factor(const FactorOptions& options, Comm& comm);
ExitCode run_verify(const VerifyOptions& options);
ExitCode run_generate(const GenerateOptions& options);
ExitCode run_devices(const DevicesOptions& options);
/// Every rank of `comm` calls it.
ExitCode run_bench(const BenchOptions& options, Comm& comm);

}  // namespace qrtool
