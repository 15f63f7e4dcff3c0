// SPDX-License-Identifier: Apache-2.0
// attempts.hpp: the backends that a run tries, one after another.
#pragma once

#include "app/options/backend_request.hpp"
#include "core/error.hpp"

namespace qrtool {

/// A run is a loop over these attempts: the first uses the backend that the user asks for, or that
/// the tool chooses. If the tool has chosen a device, and the device fails, the CPU does everything
/// again: results of two backends are never mixed.
class Attempts {
 public:
  /// is_automatic: the tool chooses the backend.
  Attempts(const BackendRequest& request, bool is_automatic)
      : request_(request), may_fall_back_(is_automatic) {}

  /// Returns the backend of this attempt.
  const BackendRequest& request() const { return request_; }
  bool is_first() const { return is_first_; }

  /// Goes on to the CPU, and says so. Call it in the handler of the `error` with which an attempt
  /// has failed. Throws that error again if no device caused it, or if no attempt is left. A limit
  /// of memory counts as a device's only if the attempt had a device.
  void go_on(const Error& error, bool had_device);

 private:
  BackendRequest request_;
  bool may_fall_back_, is_first_ = true;
};

}  // namespace qrtool
