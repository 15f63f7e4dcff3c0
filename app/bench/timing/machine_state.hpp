// SPDX-License-Identifier: Apache-2.0
// machine_state.hpp: clocks, power and load of the machine beside a measurement, as far as the
// system says them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace qrtool {

/// The state of a GPU in the words of nvidia-smi. A word is empty if nvidia-smi does not say it.
struct GpuState {
  std::string name{}, clock_mhz{}, memory_clock_mhz{}, power_watts{}, temperature{}, power_state{},
      use_percent{};
};

struct MachineState {
  std::optional<double> cpu_mhz;    // the mean of all cores
  std::string governor;             // of the first core's clock; empty: the system has none
  std::optional<double> load;       // runnable processes over the last minute, this one included
  std::vector<GpuState> gpus;       // empty without nvidia-smi
  std::vector<long> gpu_processes;  // that compute on a GPU, without this process
};

/// Asks the system and, with `with_gpus`, nvidia-smi. Values that cannot be read are left out.
MachineState machine_state(bool with_gpus);

/// Returns the reason why timings may be disturbed: another process computes on a GPU, or a GPU was
/// in use `before` this process began. Empty if nothing is known of it.
std::string disturbance(const MachineState& before, const MachineState& after);

}  // namespace qrtool
