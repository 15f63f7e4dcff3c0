// SPDX-License-Identifier: Apache-2.0
// program_cache.hpp: (kernel file, defines) -> the kernels of one device, which are built once per
// process.
//
//   on a GPU        the kernels that a run needs, in several programs: one for each heavy kernel,
//                   and a few for the others; other processes build some of them (builders.hpp)
//   on a CPU        the whole file
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/host/builders.hpp"
#include "gpu/host/device.hpp"
#include "gpu/host/driver.hpp"

namespace qrtool {

/// The -D defines of a program: name -> value.
using Defines = std::map<std::string, std::string>;

/// The only name that is not a define: the largest number of registers per work-item, for NVIDIA's
/// compiler. It applies to kernels without reqd_work_group_size.
inline constexpr std::string_view most_registers = "MOST_REGISTERS";

/// A kernel file with defines. `user` is the variant's name for error messages.
struct ProgramSource {
  std::string_view file;
  Defines defines;
  std::string_view user;
};

/// The kernels of a file that a run needs.
struct WantedKernels {
  ProgramSource source;
  std::set<std::string> kernels;
  /// Those that take long to build, and are worth a program of their own.
  std::span<const std::string_view> heavy;
};

/// The name of a program on a device of this kind: a hash of its text and of the compiler's
/// options.
std::string program_id(const DeviceInfo& info, std::string_view file, const Defines& defines);

class ProgramCache {
 public:
  /// `context` outlives the cache.
  ProgramCache(const DeviceContext& context, DeviceInfo info);

  /// Whether a run's kernels are built in parts, by prepare().
  bool has_parts() const { return has_parts_; }

  /// Builds what is missing of these kernels; kernel() then has them. Errors: as of get().
  void prepare(std::span<const WantedKernels> wanted);
  /// Takes what is missing of these kernels from disk; none where the driver would have to build
  /// some.
  void take_kept(const WantedKernels& wanted);

  /// Makes a kernel of a program that prepare() has built, else of the whole file. Errors: as of
  /// get().
  Kernel kernel(const ProgramSource& source, const std::string& name);

  /// Returns the program of the kernel file with these defines. `user` is the variant's name for
  /// error messages. Errors: DeviceError with the first lines of the build log.
  Program get(std::string_view file, const Defines& defines, std::string_view user);

  /// Whether the file, or what a run needs of it, is built.
  bool has(std::string_view file, const Defines& defines);
  /// Whether these kernels are built.
  bool has(const WantedKernels& wanted);

  /// The seconds in which every program was built, or was taken from the driver's own cache; all
  /// parts of a file are one program.
  std::vector<ProgramTime> times();

  /// Builds a program from the caller's text and does not keep it.
  Program build(std::string_view text, const Defines& defines, std::string_view user) const;

  std::size_t size() const { return programs_.size(); }

  /// The name of a file with defines among the programs for this device. Each call asks for some,
  /// so that it must be short work.
  std::string key_of(std::string_view file, const Defines& defines) const;

  /// For tests: whether files are built in parts, and how builders are used.
  void set_builders(bool has_parts, BuilderLimits limits);

 private:
  /// Some kernels of a file, in a program of their own.
  struct Part {
    const ProgramSource* source;
    std::set<std::string> kernels;
  };

  std::string text_of_part(const Part& part) const;
  Program build_text(const std::string& text, const std::string& options,
                     std::string_view user) const;
  std::vector<Part> missing_parts(std::span<const WantedKernels> wanted) const;
  void build_parts(const std::vector<Part>& parts);
  void add_time(const ProgramSource& source, double seconds);

  const DeviceContext& context_;
  DeviceInfo info_;
  std::mutex mutex_;
  bool has_parts_;
  BuilderLimits builders_;
  std::map<std::string, Program> programs_;                           // key: file and options
  std::map<std::string, std::map<std::string, Program>> of_kernels_;  // the key, then the kernel
  std::vector<ProgramTime> times_;
};

}  // namespace qrtool
