// SPDX-License-Identifier: Apache-2.0
// program_cache.cpp: builds programs and reports the compiler's messages.
#include "gpu/host/program_cache.hpp"

#include <fmt/format.h>

#include "core/driver_scope.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "gpu/host/kernel_sources.hpp"

namespace qrtool {
namespace {

std::string_view text_of(std::string_view file) {
  for (const KernelSource& source : kernel_sources()) {
    if (source.name == file) return source.text;
  }
  throw InternalError(fmt::format("there is no kernel file {}", file));
}

/// Removes `unroll` pragmas for CPUs. Unrolled loops over register tiles take the CPU compiler ten
/// times as long and are not faster. Line numbers do not change, and `unroll 1` is kept.
std::string without_unrolling(std::string_view text) {
  constexpr std::string_view pragma = "#pragma unroll";
  std::string result;
  while (true) {
    const std::size_t at = text.find(pragma);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    text.remove_prefix(at);
    const std::size_t end = text.find('\n');
    if (text.substr(pragma.size(), end - pragma.size()) == " 1") result += text.substr(0, end);
    text.remove_prefix(end);
  }
}

/// The first lines of a build log that are not blank, indented.
std::string first_lines(std::string_view log, int lines) {
  std::string text;
  while (lines > 0 && !log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string line = escape(log.substr(0, end));
    if (line.find_first_not_of(' ') != std::string::npos) {
      text += "\n  " + line;
      --lines;
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return text;
}

}  // namespace

std::string ProgramCache::options_for(const Defines& defines) const {
  std::string options = "-cl-std=CL1.2";
  if (info_.exact_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  options += fmt::format(" -DSUB_GROUP_BODY={}", static_cast<int>(info_.sub_groups));
  for (const auto& [name, value] : defines) {
    const bool is_limit = name == most_registers;
    options += is_limit ? fmt::format(" -cl-nv-maxrregcount={}", value)
                        : fmt::format(" -D{}={}", name, value);
  }
  return options;
}

std::string ProgramCache::key_of(std::string_view file, const Defines& defines) const {
  return fmt::format("{} {}", file, options_for(defines));
}

bool ProgramCache::has(std::string_view file, const Defines& defines) {
  const std::lock_guard lock(mutex_);
  return programs_.contains(key_of(file, defines));
}

cl::Program ProgramCache::get(std::string_view file, const Defines& defines,
                              std::string_view user) {
  const std::string key = key_of(file, defines);
  const std::lock_guard lock(mutex_);
  auto found = programs_.find(key);
  if (found == programs_.end()) {
    found = programs_.emplace(key, build(text_of(file), defines, user)).first;
  }
  return found->second;
}

cl::Program ProgramCache::build(std::string_view text, const Defines& defines,
                                std::string_view user) const {
  const std::string options = options_for(defines);
  const DriverScope driver;
  cl::Program program(context_, info_.limits.is_cpu ? without_unrolling(text) : std::string(text));
  try {
    program.build({device_}, options.c_str());
  } catch (const cl::Error& error) {
    std::string log;
    try {
      log = program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_);
    } catch (const cl::Error&) {
      log = "no build log";
    }
    throw DeviceError(
        fmt::format("{}: its kernels do not build on {} (OpenCL error {}, options {}):{}", user,
                    info_.text(), error.err(), options, first_lines(log, 5)),
        "--backend cpu works without this device");
  }
  return program;
}

}  // namespace qrtool
