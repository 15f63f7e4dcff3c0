// SPDX-License-Identifier: Apache-2.0
// rates.hpp: the time that a problem will take on a GPU, estimated from measurements.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/problem/problem.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

/// What a device will do.
struct DeviceWork {
  std::string_view variant;           // that the plan chooses; empty: none takes the problem
  std::vector<std::string> programs;  // their names (program_id)
  double pin_seconds = 0;             // until the memory of the host is known to the device
  double run_seconds = 0;             // from host memory to host memory, with the check
};

/// What systems have beside R.
struct SystemTraits {
  bool shares_a = false;  // one A serves all, whose rows have weights of their own for each side
  bool is_wide = false;   // A has fewer rows than columns, so that R is that of A'
};

/// The factors of a problem by the least costly variant: its estimate (Variant::seconds), and as
/// long again for the check. Copies overlap with them where there are several sub-chunks.
DeviceWork factor_work(const Problem& problem, const DeviceInfo& device);

/// Least squares with `sides` right sides for each matrix (tuning::measured_systems). `problem` is
/// that of R. Of wide systems R is computed twice (wide.cl).
DeviceWork solve_work(const Problem& problem, index_t sides, const DeviceInfo& device,
                      const SystemTraits& traits = {});

/// The seconds in which the matrices and their factors are copied, which no device can do without.
double copy_seconds(const Problem& problem);

/// Whether the measurements are of such a device. The rates of others are guesses, in proportion to
/// their compute units.
bool is_measured(const DeviceInfo& device);

}  // namespace qrtool
