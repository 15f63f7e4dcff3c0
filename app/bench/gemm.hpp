// SPDX-License-Identifier: Apache-2.0
// gemm.hpp: `qrtool bench --gemm`: the matrix products behind opencl/large.
#pragma once

#include "app/bench/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Errors: DeviceError.
ExitCode run_bench_gemm(const BenchOptions& options);

}  // namespace qrtool
