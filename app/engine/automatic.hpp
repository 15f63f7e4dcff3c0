// SPDX-License-Identifier: Apache-2.0
// automatic.hpp: the choice of `--backend auto` between the CPU and a device, by estimates.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "app/engine/timings.hpp"
#include "core/problem/problem.hpp"
#include "gpu/estimate/rates.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

/// Why the CPU alone solves systems whose A has this type; empty where a device may.
std::string objection_to_systems(ElementType type);

/// What a run does: it factors, or it solves least squares with A = QR.
struct Work {
  Work(const Problem& factored, index_t sides = 0, const SystemTraits& of_systems = {})
      : problem(factored), right_sides(sides), traits(of_systems) {}
  /// Why the CPU alone does it; empty where a device may.
  std::string objection_to_devices() const {
    return right_sides > 0 ? objection_to_systems(problem.type) : "";
  }

  Problem problem;      // of R where it solves
  index_t right_sides;  // of each matrix; 0: it factors
  SystemTraits traits;
};

/// The programs of a run: those that this user has never built on the device, and the seconds until
/// all are built, or taken from the driver's cache.
struct ProgramsEstimate {
  int all = 0, unseen = 0;
  double seconds = 0;
};
/// `programs`: their names (program_id).
ProgramsEstimate estimate_programs(std::span<const std::string> programs, const DeviceInfo& device,
                                   const Timings& timings);

/// The seconds of a run on a device, by its parts.
struct DeviceEstimate {
  double start = 0;     // of the device and of the process that uses it
  double programs = 0;  // until the kernels are built, or taken from the driver's cache
  double work = 0;      // from host memory to host memory, with the check
  int unseen_programs = 0;
  bool is_guess = false;  // the device was never measured

  double total() const { return start + programs + work; }
};

/// With the times of earlier runs. The work is infinite where no variant takes it.
DeviceEstimate estimate(const Work& work, const DeviceInfo& device, const Timings& timings);

/// The seconds of `threads` threads on the CPU.
double cpu_estimate(const Work& work, int threads);

/// The device that is faster than the CPU with its start, or the CPU where `device` is null.
/// is_started: this process uses the device already, and waits for no start.
struct AutomaticChoice {
  const DeviceInfo* device = nullptr;
  std::string reason;  // with the numbers
};
AutomaticChoice choose_automatically(const Work& work, const Limits& host,
                                     std::span<const DeviceInfo> devices, const Timings& timings,
                                     bool is_started = false);

/// Whether the CPU would take clearly longer than any device takes to start and to copy. Where it
/// does not, the devices need not be looked for.
bool is_worth_a_device(const Work& work, const Limits& host, const Timings& timings);

/// Whether a short measurement on the device should come before the choice: nothing is known of its
/// speed, and the measurement is a small part of what the CPU would take.
bool is_worth_a_sample(const Work& work, const Limits& host, const DeviceInfo& device,
                       const Timings& timings);

}  // namespace qrtool
