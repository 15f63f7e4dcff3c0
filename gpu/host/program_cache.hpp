// SPDX-License-Identifier: Apache-2.0
// program_cache.hpp: (kernel file, defines) -> a program of one device, which is built once per
// process.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/host/device.hpp"
#include "gpu/host/opencl.hpp"

namespace qrtool {

/// The -D defines of a program: name -> value.
using Defines = std::map<std::string, std::string>;

/// The only name that is not a define: the largest number of registers per work-item, for NVIDIA's
/// compiler. It applies to kernels without reqd_work_group_size.
inline constexpr std::string_view most_registers = "MOST_REGISTERS";

/// The name of a program on a device of this kind: a hash of its text and of the compiler's
/// options.
std::string program_id(const DeviceInfo& info, std::string_view file, const Defines& defines);

class ProgramCache {
 public:
  ProgramCache(cl::Context context, cl::Device device, DeviceInfo info)
      : context_(std::move(context)), device_(std::move(device)), info_(std::move(info)) {}

  /// Returns the program of the kernel file with these defines. `user` is the variant's name for
  /// error messages. Errors: DeviceError with the first lines of the build log.
  cl::Program get(std::string_view file, const Defines& defines, std::string_view user);

  /// Whether get() will return without building anything.
  bool has(std::string_view file, const Defines& defines);

  /// The seconds in which every program was built, or was taken from the driver's own cache.
  std::vector<ProgramTime> times();

  /// Builds a program from the caller's text and does not keep it.
  cl::Program build(std::string_view text, const Defines& defines, std::string_view user) const;

  std::size_t size() const { return programs_.size(); }

 private:
  std::string key_of(std::string_view file, const Defines& defines) const;

  cl::Context context_;
  cl::Device device_;
  DeviceInfo info_;
  std::mutex mutex_;
  std::map<std::string, cl::Program> programs_;  // key: file and options
  std::vector<ProgramTime> times_;
};

}  // namespace qrtool
