// SPDX-License-Identifier: Apache-2.0
// automatic.hpp: the choice of `--backend auto` between the CPU and a device, by estimates.
#pragma once

#include <span>
#include <string>

#include "app/engine/timings.hpp"
#include "core/plan/estimate.hpp"
#include "core/plan/variant.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

/// Estimates the start, the programs and the work of a device, with the times of earlier runs. The
/// work is infinite if no variant can do it. `variant`: the one that runs; null: the plan's choice.
Estimate estimate(const Work& work, const DeviceInfo& device, const Timings& timings,
                  const Variant* variant = nullptr);

/// The device that is faster than the CPU, its start included, or the CPU if `device` is null.
/// is_started: this process uses the device already, and does not wait for its start.
struct AutomaticChoice {
  const DeviceInfo* device = nullptr;
  std::string reason;  // with the numbers
  /// How long a device would take with built kernels, and the command that builds them, if that is
  /// at most half of the CPU's time; else empty.
  std::string advice = {};
};
AutomaticChoice choose_automatically(const Work& work, const Limits& host,
                                     std::span<const DeviceInfo> devices, const Timings& timings,
                                     bool is_started = false);

/// Whether the CPU would take clearly longer than any device takes to start and to copy. If not, no
/// devices are looked for.
bool is_worth_a_device(const Work& work, const Limits& host, const Timings& timings);

/// Whether a short measurement on the device should come before the choice: nothing is known of its
/// speed, and the measurement is a small part of the time on the CPU.
bool is_worth_a_sample(const Work& work, const Limits& host, const DeviceInfo& device,
                       const Timings& timings);

}  // namespace qrtool
