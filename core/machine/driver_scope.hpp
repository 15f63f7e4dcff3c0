// SPDX-License-Identifier: Apache-2.0
// driver_scope.hpp: marks the time in which a device driver is at work. Drivers are foreign code in
// our process: some end it, by exit() or abort(), where they should return an error. Whoever
// handles that must know whose fault it is.
#pragma once

#include <atomic>

namespace qrtool {

/// Marks the time in a driver. A driver's threads work for the caller, so this is a property of the
/// process, not of a thread.
class DriverScope {
 public:
  DriverScope() { ++depth_; }
  ~DriverScope() { --depth_; }
  DriverScope(const DriverScope&) = delete;
  DriverScope& operator=(const DriverScope&) = delete;

  /// May be called in a signal handler.
  static bool is_entered() { return depth_.load() > 0; }

 private:
  static inline std::atomic<int> depth_ = 0;
  static_assert(std::atomic<int>::is_always_lock_free);
};

}  // namespace qrtool
