// SPDX-License-Identifier: Apache-2.0
// costs.cpp: reads the tables of the repository when they are needed first.
#include "gpu/model/costs.hpp"

namespace qrtool {

const CostTable& device_costs(const Limits& device) {
  if (device.costs != nullptr) return *device.costs;
  if (device.is_cpu) {
    static const CostTable cpu = CostTable::view(cpu_device_rates());
    return cpu;
  }
  static const CostTable gpu = CostTable::view(h100_rates());
  return gpu;
}

}  // namespace qrtool
