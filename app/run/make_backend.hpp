// SPDX-License-Identifier: Apache-2.0
// make_backend.hpp: which backend the command line means.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/backend.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

struct BackendRequest {
  std::string name = "auto";  // auto, cpu, opencl
  std::string device;         // --device, implies opencl; empty: the GPUs; "all"
  std::string variant;        // --variant BACKEND/NAME, implies its backend
  int rank = 0;               // takes number rank modulo them of the devices that are meant
  int ranks = 1;

  /// Nothing is asked for: another backend may take the place of the one that is chosen.
  bool is_automatic() const { return name == "auto" && device.empty() && variant.empty(); }
  bool asks_for_device() const {
    return name == "opencl" || !device.empty() || variant.starts_with("opencl/");
  }
};

struct BackendChoice {
  std::unique_ptr<Backend> backend;
  std::string reason;
};

/// Errors: UsageError where name, device and variant contradict each other; DeviceError where a
/// device was asked for and is not there.
BackendChoice make_backend(const BackendRequest& request, const Problem& problem,
                           const Limits& limits);

/// make_backend(), and a note that says which and why where `is_verbose`.
BackendChoice choose_backend(const BackendRequest& request, const Problem& problem,
                             const Limits& limits, bool is_verbose);

/// What `auto` takes for a problem: a device, or the CPU where `device` is null.
struct AutomaticChoice {
  const DeviceInfo* device = nullptr;
  std::string reason;
};
AutomaticChoice choose_automatically(const Problem& problem, const Limits& host,
                                     std::span<const DeviceInfo> devices);

/// Whether the CPU would be done before a device had started.
bool is_worth_a_device(const Problem& problem, const Limits& host);

}  // namespace qrtool
