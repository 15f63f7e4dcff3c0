// SPDX-License-Identifier: Apache-2.0
// make_backend.hpp: makes the backend that the command line asks for.
#pragma once

#include <memory>
#include <string>

#include "app/options/backend_request.hpp"
#include "app/run/automatic.hpp"
#include "core/backend.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

struct BackendChoice {
  std::unique_ptr<Backend> backend;  // null: none could be chosen
  std::string reason;

  bool is_device() const { return backend != nullptr && backend->name() != "cpu"; }
};

/// Errors: DeviceError where --device names a device that is not there.
void require_named_device(const BackendRequest& request);

/// Errors: UsageError where name, device and variant contradict each other; DeviceError where a
/// device was asked for and is not there.
BackendChoice make_backend(const BackendRequest& request, const Work& work, const Limits& limits);

/// Calls make_backend(). Where `says_why`, it prints which backend was chosen, and why.
BackendChoice choose_backend(const BackendRequest& request, const Work& work, const Limits& limits,
                             bool says_why);

/// The device of a backend for the line of a summary: "cpu", "NVIDIA H200"; an OpenCL device that
/// is a CPU is said to be one.
std::string name_of_device(const Backend& backend);

}  // namespace qrtool
