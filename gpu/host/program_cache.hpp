// SPDX-License-Identifier: Apache-2.0
// program_cache.hpp: (kernel file, defines) -> program of one device, built once per process.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/host/device.hpp"
#include "gpu/host/opencl.hpp"

namespace qrtool {

/// -D defines of a program by name.
using Defines = std::map<std::string, std::string>;

/// The one that is no define: registers per work-item at most, for NVIDIA's compiler. It applies to
/// kernels without reqd_work_group_size.
inline constexpr std::string_view most_registers = "MOST_REGISTERS";

class ProgramCache {
 public:
  ProgramCache(cl::Context context, cl::Device device, DeviceInfo info)
      : context_(std::move(context)), device_(std::move(device)), info_(std::move(info)) {}

  /// The program of the kernel file with these defines. `user` is named in an error: the variant.
  /// Errors: DeviceError with the first lines of the build log.
  cl::Program get(std::string_view file, const Defines& defines, std::string_view user);

  /// Builds a program from a text of the caller's, without keeping it.
  cl::Program build(std::string_view text, const Defines& defines, std::string_view user) const;

  std::size_t size() const { return programs_.size(); }

 private:
  std::string options_for(const Defines& defines) const;

  cl::Context context_;
  cl::Device device_;
  DeviceInfo info_;
  std::mutex mutex_;
  std::map<std::string, cl::Program> programs_;  // by file and options
};

}  // namespace qrtool
