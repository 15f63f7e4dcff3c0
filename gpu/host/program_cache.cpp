// SPDX-License-Identifier: Apache-2.0
// program_cache.cpp: builds programs and reports the compiler's messages.
#include "gpu/host/program_cache.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>

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

std::string text_for(const DeviceInfo& info, std::string_view text) {
  return info.limits.is_cpu ? without_unrolling(text) : std::string(text);
}

std::string options_for(const DeviceInfo& info, const Defines& defines) {
  std::string options = "-cl-std=CL1.2";
  if (info.exact_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  options += fmt::format(" -DSUB_GROUP_BODY={}", static_cast<int>(info.sub_groups));
  for (const auto& [name, value] : defines) {
    const bool is_limit = name == most_registers;
    options += is_limit ? fmt::format(" -cl-nv-maxrregcount={}", value)
                        : fmt::format(" -D{}={}", name, value);
  }
  return options;
}

/// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
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

std::string program_id(const DeviceInfo& info, std::string_view file, const Defines& defines) {
  const std::uint64_t of_text = hash_of(text_for(info, text_of(file)));
  return fmt::format("{:016x}", hash_of(options_for(info, defines), of_text));
}

std::string ProgramCache::key_of(std::string_view file, const Defines& defines) const {
  return fmt::format("{} {}", file, options_for(info_, defines));
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
    const auto start = std::chrono::steady_clock::now();
    found = programs_.emplace(key, build(text_of(file), defines, user)).first;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    times_.push_back({program_id(info_, file, defines), std::string(user), seconds.count()});
  }
  return found->second;
}

std::vector<ProgramTime> ProgramCache::times() {
  const std::lock_guard lock(mutex_);
  return times_;
}

cl::Program ProgramCache::build(std::string_view text, const Defines& defines,
                                std::string_view user) const {
  const std::string options = options_for(info_, defines);
  const DriverScope driver;
  cl::Program program(context_, text_for(info_, text));
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
