// SPDX-License-Identifier: Apache-2.0
// device_check.hpp: the errors of every matrix of a sub-chunk, measured on the device
// (kernels/check.cl).
#pragma once

#include <vector>

#include "gpu/gpu_variant.hpp"

namespace qrtool {

/// Bytes per matrix of each work buffer of the check.
std::vector<std::size_t> check_workspace(const Problem& problem);

Defines check_defines(const Problem& problem);

/// Writes a DeviceErrors per matrix into `errors`. work: as check_workspace asked. `launch` knows
/// the program built from check.cl with check_defines.
void enqueue_check(const FactorJob& job, const std::vector<cl::Buffer>& work,
                   const cl::Buffer& errors, Launcher& launch);

/// The same with the program built from check_vector.cl, for Q and R: not for raw's reflectors.
void enqueue_vector_check(const FactorJob& job, const cl::Buffer& errors, Launcher& launch);

}  // namespace qrtool
