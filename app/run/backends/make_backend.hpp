// SPDX-License-Identifier: Apache-2.0
// make_backend.hpp: makes the backend that the command line asks for.
#pragma once

#include <memory>
#include <string>

#include "app/engine/automatic.hpp"
#include "app/options/backend_request.hpp"
#include "core/backend/backend.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

struct BackendChoice {
  std::shared_ptr<Backend> backend;  // null: none could be chosen
  std::string reason;
  std::string advice = {};  // of AutomaticChoice

  bool is_device() const { return backend != nullptr && backend->name() != "cpu"; }
};

/// Starts the device of the command line, if it names one, while the caller goes on. make_backend()
/// waits for it, and reports its failure.
void start_device(const BackendRequest& request);

/// Errors: DeviceError if --device names a device that does not exist.
void require_named_device(const BackendRequest& request);

/// Errors: UsageError if name, device and variant contradict each other; DeviceError if the device
/// that was asked for does not exist. `before`: the backend of an earlier run of this process,
/// which is used again if an equal one would be made; null: there was none.
BackendChoice make_backend(const BackendRequest& request, const Work& work, const Limits& limits,
                           const std::shared_ptr<Backend>& before = nullptr);

/// Returns a place for the backend of the only run of a process. It is never destroyed: the end of
/// the process frees the buffers and queues of a device sooner.
std::shared_ptr<Backend>& backend_until_exit();

/// Calls make_backend(). With `says_why`, it prints which backend was chosen, and why.
BackendChoice choose_backend(const BackendRequest& request, const Work& work, const Limits& limits,
                             bool says_why, const std::shared_ptr<Backend>& before = nullptr);

/// Prints the advice of a choice as a note, once for a process.
void note_advice(const BackendChoice& choice);

/// Prints a note after a run if copies to the device were slow because no memory could be locked.
void note_slow_copies(const Backend& backend);

/// Returns the device of a backend for the line of a summary: "cpu", "NVIDIA H200"; an OpenCL
/// device that is a CPU is said to be one.
std::string name_of_device(const Backend& backend);

}  // namespace qrtool
