// SPDX-License-Identifier: Apache-2.0
// programs.hpp: the programs that a problem needs on a device, known without using the device.
#pragma once

#include <string>
#include <vector>

#include "core/plan/estimate.hpp"
#include "core/plan/variant.hpp"
#include "gpu/host/device.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {

/// The programs with which `variant` factors the problem and its errors are measured. Programs for
/// the rare matrices that a variant refuses are not among them.
std::vector<ProgramSource> factor_sources(const Variant& variant, const Problem& problem,
                                          const DeviceInfo& device);

/// Whether right sides of one matrix are solved with the factors of the CPU
/// (solve/shared/shared.cl).
bool has_shared_systems(const Work& work, const Limits& device);

/// The names (program_id) of the programs of a run: of factor_sources(), or of those that solve and
/// check systems.
std::vector<std::string> programs_of(const Variant& variant, const Work& work,
                                     const DeviceInfo& device);

}  // namespace qrtool
