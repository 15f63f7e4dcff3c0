// SPDX-License-Identifier: Apache-2.0
// costs.cpp: reads the tables of the repository when they are needed first.
#include "gpu/model/costs.hpp"

namespace qrtool {

const CostTable& device_costs(const Limits& device) {
  if (device.costs != nullptr) return *device.costs;
  if (device.is_cpu) {
    static const CostTable cpu = CostTable::from_text(cpu_device_rates(), "the table of PoCL");
    return cpu;
  }
  static const CostTable gpu = CostTable::from_text(h100_rates(), "the table of the H100");
  return gpu;
}

}  // namespace qrtool
