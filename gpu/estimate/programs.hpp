// SPDX-License-Identifier: Apache-2.0
// programs.hpp: the programs that a problem needs on a device, known without using the device.
#pragma once

#include <string>
#include <vector>

#include "core/plan/variant.hpp"
#include "gpu/estimate/rates.hpp"
#include "gpu/host/device.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {

/// The programs with which `variant` factors the problem and its errors are measured. Programs for
/// the rare matrices that a variant refuses are not among them.
std::vector<ProgramSource> factor_sources(const Variant& variant, const Problem& problem,
                                          const DeviceInfo& device);

/// The names (program_id) of factor_sources().
std::vector<std::string> factor_programs(const Variant& variant, const Problem& problem,
                                         const DeviceInfo& device);

/// Whether right sides of one matrix are solved with the factors of the CPU
/// (solve/shared/shared.cl).
bool has_shared_systems(const Problem& problem, index_t sides, const Limits& device);

/// The same for least squares with `sides` right sides for each matrix. `problem` is that of R.
std::vector<std::string> solve_programs(const Variant& variant, const Problem& problem,
                                        index_t sides, const DeviceInfo& device,
                                        const SystemTraits& traits = {});

}  // namespace qrtool
