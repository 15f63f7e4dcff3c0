// SPDX-License-Identifier: Apache-2.0
// gemm.hpp: `qrtool bench --gemm` times the matrix products that opencl/large uses.
#pragma once

#include "app/options/bench_options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Errors: DeviceError.
ExitCode run_bench_gemm(const BenchOptions& options);

}  // namespace qrtool
