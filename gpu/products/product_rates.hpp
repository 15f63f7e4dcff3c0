// SPDX-License-Identifier: Apache-2.0
// product_rates.hpp: measures the speed of the matrix products of `large` on a device, for `bench`.
#pragma once

#include <string>
#include <vector>

#include "core/problem/problem.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

/// What is measured of one body of gemm.cl. Rates are in operations per second by the device's
/// clock. A body that computes one product by three counts it as one.
struct ProductRate {
  std::string body;
  ElementType type = ElementType::float32;
  int rows = 0, depth = 0;  // C (rows x rows) -= A (rows x depth) B, and Z = A'C
  double peak = 0;          // rate of the body's instruction, measured
  double subtract = 0, transposed = 0;
  double error = 0;  // ||A B - computed|| / ||A B||, Frobenius norm, entries uniform in -1 .. 1
};

/// Measures every body that the device has. Errors: DeviceError.
std::vector<ProductRate> measure_products(const DeviceInfo& device);

}  // namespace qrtool
