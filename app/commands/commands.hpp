// SPDX-License-Identifier: Apache-2.0
// commands.hpp: one function per command. Each prints its result and returns the exit code.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"
#include "core/machine/comm.hpp"

namespace qrtool {

/// Errors: every class of core/error.hpp. An error leaves nothing on disk, except a complete output
/// if only standard output failed. Every rank of `comm` calls it.
ExitCode run_factor(const FactorOptions& options, Comm& comm);
ExitCode run_solve(const SolveOptions& options);
ExitCode run_append(const AppendOptions& options);
ExitCode run_apply(const ApplyOptions& options);
ExitCode run_verify(const VerifyOptions& options);
ExitCode run_generate(const GenerateOptions& options);
ExitCode run_info(const InfoOptions& options);
ExitCode run_devices(const DevicesOptions& options);
/// `devices --build`: builds the kernels for the matrices of a file, for one shape, or for usual
/// shapes, so that the driver keeps them for later runs. Errors: DeviceError if there is no device;
/// InputError.
ExitCode build_kernels(const DevicesOptions& options);
ExitCode run_bench(const BenchOptions& options);

}  // namespace qrtool
