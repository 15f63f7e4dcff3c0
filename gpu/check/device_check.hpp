// SPDX-License-Identifier: Apache-2.0
// device_check.hpp: the errors of every matrix of a sub-chunk, measured on the device
// (check.cl).
#pragma once

#include <vector>

#include "gpu/gpu_variant.hpp"

namespace qrtool {

/// Bytes per matrix of each work buffer of the check, on any device.
std::vector<std::size_t> check_workspace(const Problem& problem);

struct CheckProgram {
  std::string_view file;  // "gpu/check/check.cl"
  Defines defines;
};
CheckProgram check_program(const Problem& problem, const Limits& limits);

/// Writes a DeviceErrors per matrix into `errors`. work: as check_workspace asked. `launch` knows
/// the program that check_program names.
void enqueue_check(const FactorJob& job, const Limits& limits, const std::vector<cl::Buffer>& work,
                   const cl::Buffer& errors, Launcher& launch);

/// The same without barriers, for Q and R: not for raw's reflectors.
CheckProgram vector_check_program(const Problem& problem);
void enqueue_vector_check(const FactorJob& job, const cl::Buffer& errors, Launcher& launch);

}  // namespace qrtool
