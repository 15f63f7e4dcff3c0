// SPDX-License-Identifier: Apache-2.0
// backend_request.hpp: --backend, --device and --variant.
#pragma once

#include <string>

namespace qrtool {

struct BackendRequest {
  std::string name = "auto";  // auto, cpu, gpu, opencl
  std::string device;         // --device, implies opencl; empty: the GPUs; "all"
  // The device to use if `device` is empty. Empty: the first GPU.
  std::string usual_device = {};
  std::string variant;    // --variant BACKEND/NAME, implies its backend
  bool portable = false;  // only kernel bodies that run on any device; bench alone asks for it
  int rank = 0;           // of the chosen devices, rank r takes number r modulo their number
  int ranks = 1;

  /// Whether the user leaves the choice to the tool, which may then change it after a failure.
  bool is_automatic() const { return name == "auto" && device.empty() && variant.empty(); }
  bool asks_for_device() const {
    return name == "gpu" || name == "opencl" || !device.empty() || variant.starts_with("opencl/");
  }
  /// Returns the device to use, if one is used.
  const std::string& wanted_device() const { return device.empty() ? usual_device : device; }
};

}  // namespace qrtool
