// SPDX-License-Identifier: Apache-2.0
// device_check.hpp: measures the errors of every matrix of a sub-chunk on the device (check.cl).
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// Sizes of the check's work buffers in bytes per matrix. They are the same on all devices.
std::vector<std::size_t> check_workspace(const Problem& problem);

/// Bytes of one matrix on the device beside A, Q, R, V and tau: workspaces of the variant and of
/// the check.
std::size_t device_workspace_bytes(const GpuVariant& variant, const Problem& problem);
/// The same, for the description of the variant.
template <GpuVariant (*variant)()>
std::size_t device_bytes_of(const Problem& problem) {
  return device_workspace_bytes(variant(), problem);
}

/// Kernels of check.cl and check_rows.cl that take long to build.
inline constexpr std::array<std::string_view, 2> heavy_check_kernels{"measure_gram",
                                                                     "measure_rows"};

struct CheckProgram {
  std::string_view file;  // "gpu/check/check.cl"
  Defines defines;
};
CheckProgram check_program(const Problem& problem, const Limits& limits);

/// Enqueues the kernels that write a DeviceErrors per matrix to `errors`. work: buffers of the
/// sizes that check_workspace gives. `launch` holds the program that check_program names.
void enqueue_check(const FactorJob& job, const Limits& limits, const std::vector<Buffer>& work,
                   const Buffer& errors, Launcher& launch);

/// The program of the check without barriers. It measures Q and R, not raw's reflectors.
CheckProgram vector_check_program(const Problem& problem);
void enqueue_vector_check(const FactorJob& job, const Buffer& errors, Launcher& launch);

}  // namespace qrtool
