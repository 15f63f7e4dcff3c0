// SPDX-License-Identifier: Apache-2.0
// timings.hpp: what devices took in earlier runs, and its form as text.
//
// `--backend auto` needs it: whether a device pays depends on its start, and on whether its driver
// already has the kernels of a problem.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/problem/problem.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

/// A program that was built on a device. Its first time is the compiler's, unless the driver had
/// it; the least time of later runs is that of the driver's own cache.
struct KeptProgram {
  std::string id, user;
  double first_seconds = 0;
  std::optional<double> least_seconds;  // none: it was not used again
};

/// A short measurement on a device without a table: from host memory to host memory with the check,
/// after its start.
struct KeptSample {
  Problem problem;
  double seconds = 0;
};

struct KeptDevice {
  std::string platform, name, driver;
  bool is_gpu = true;
  double start_seconds = 0;           // the least that was seen
  std::vector<KeptProgram> programs;  // the oldest first
  std::vector<KeptSample> samples;

  const KeptProgram* find(const std::string& id) const;
};

/// Devices. A driver of another version is another device.
class Timings {
 public:
  /// Returns an empty object if the text cannot be understood.
  static Timings from_text(const std::string& text);
  std::string to_text() const;

  const std::vector<KeptDevice>& devices() const { return devices_; }
  /// Returns null if the device was never used.
  const KeptDevice* find(const DeviceInfo& info) const;
  /// Returns the least start of any GPU that was used, or nothing if there was none.
  std::optional<double> least_start_seconds() const;

  /// Adds the times of a process. Returns whether they are news: another device or program, or a
  /// time that is shorter by a tenth.
  bool add(const DeviceTimes& times);
  void add(const DeviceInfo& info, const KeptSample& sample);

 private:
  KeptDevice& entry_of(const DeviceInfo& info);

  std::vector<KeptDevice> devices_;
};

}  // namespace qrtool
