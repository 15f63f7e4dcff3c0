// SPDX-License-Identifier: Apache-2.0
// build_kernels.hpp: `qrtool devices --build`.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Builds the kernels for the matrices of a file, for one shape, or for usual shapes, so that the
/// driver keeps them for later runs. Errors: DeviceError where there is no device; InputError.
ExitCode build_kernels(const DevicesOptions& options);

}  // namespace qrtool
