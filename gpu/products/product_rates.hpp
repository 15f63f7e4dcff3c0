// SPDX-License-Identifier: Apache-2.0
// product_rates.hpp: how fast the matrix products behind `large` are on a device, for `bench`.
#pragma once

#include <string>
#include <vector>

#include "core/problem.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

/// One body of gemm.cl. Rates in operations per second, by the device's clock; those of a
/// body that makes one product of three count the one.
struct ProductRate {
  std::string body;
  ElementType type = ElementType::float32;
  int rows = 0, depth = 0;  // C (rows x rows) -= A (rows x depth) B, and Z = A'C
  double peak = 0;          // of the body's instruction, measured
  double subtract = 0, transposed = 0;
  double error = 0;  // ||A B - computed|| / ||A B||, Frobenius, entries uniform in -1 .. 1
};

/// Every body that the device has. Errors: DeviceError.
std::vector<ProductRate> measure_products(const DeviceInfo& device);

}  // namespace qrtool
