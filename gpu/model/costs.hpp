// SPDX-License-Identifier: Apache-2.0
// costs.hpp: the tables of costs of the repository (gpu/rates), and which one holds for a device.
#pragma once

#include "core/plan/cost.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// Times of every variant, gpu/rates/h100.csv and gpu/rates/cpu_device.csv.
const CostTable& h100_rates();
const CostTable& cpu_device_rates();
/// Whole runs of least squares, gpu/rates/h200_runs.csv: R, x with one right side, and the errors,
/// without copies; by normal equations if they are tried first.
const CostTable& h200_runs();

/// The table of the device itself where there is one (Limits::costs); otherwise that of an H100 for
/// a GPU, and that of a CPU with PoCL for any other device.
inline const CostTable& device_costs(const Limits& device) {
  if (device.costs != nullptr) return *device.costs;
  return device.is_cpu ? cpu_device_rates() : h100_rates();
}

}  // namespace qrtool
