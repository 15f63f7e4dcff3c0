// SPDX-License-Identifier: Apache-2.0
// program_cache.cpp: builds programs and reports the compiler's messages.
#include "gpu/host/program_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "core/machine/parallel.hpp"
#include "core/text.hpp"
#include "gpu/host/kernel_sources.hpp"
#include "gpu/host/kernel_text.hpp"
#include "gpu/host/tuning.hpp"

namespace qrtool {
namespace {

std::string_view text_of(std::string_view file) {
  for (const KernelSource& source : kernel_sources()) {
    if (source.name == file) return source.text;
  }
  throw InternalError(fmt::format("there is no kernel file {}", file));
}

std::string text_for(const DeviceInfo& info, std::string_view text) {
  return info.limits.is_cpu ? without_unrolling(text) : std::string(text);
}

std::string options_for(const DeviceInfo& info, const Defines& defines) {
  // Compilers write their warnings to the terminal of whoever runs the program.
  std::string options = "-w -cl-std=" + info.standard;
  if (info.exact_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  options += fmt::format(" -DSUB_GROUP_BODY={}", static_cast<int>(info.sub_groups));
  if (info.limits.float64_products)
    options += fmt::format(" -DFLOAT64_BODY={}", static_cast<int>(info.float64_body));
  if (!info.limits.has_float64) options += " -DHAS_FLOAT64=0";
  for (const auto& [name, value] : defines) {
    const bool is_limit = name == most_registers;
    options += is_limit ? fmt::format(" -cl-nv-maxrregcount={}", value)
                        : fmt::format(" -D{}={}", name, value);
  }
  return options;
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

/// How builders are used: where the driver keeps what it builds on disk, which is known of
/// NVIDIA's.
BuilderLimits builders_for(const DeviceInfo& info) {
  const char* is_off = std::getenv("CUDA_CACHE_DISABLE");
  const bool has_cache = is_off == nullptr || std::strcmp(is_off, "0") == 0;
  const bool is_other = info.sub_groups != SubGroups::nvidia_ptx || info.cuda_ordinal >= 0;
  if (info.limits.is_cpu || is_other || !has_cache) return {};
  const std::size_t by_memory = info.limits.host_bytes / tuning::builder_bytes;
  const int most = std::min(tuning::most_builders, info.limits.threads - 1);
  return {.command = builder_command(),
          .most_processes = by_memory < tuning::most_builders
                                ? std::min(most, static_cast<int>(by_memory))
                                : most,
          .patience = tuning::builder_patience};
}

}  // namespace

ProgramCache::ProgramCache(const DeviceContext& context, DeviceInfo info)
    : context_(context),
      info_(std::move(info)),
      has_parts_(!info_.limits.is_cpu),
      builders_(builders_for(info_)) {}

void ProgramCache::set_builders(bool has_parts, BuilderLimits limits) {
  has_parts_ = has_parts;
  builders_ = std::move(limits);
}

std::string program_id(const DeviceInfo& info, std::string_view file, const Defines& defines) {
  const std::uint64_t of_text = hash_of(text_for(info, text_of(file)));
  return fmt::format("{:016x}", hash_of(options_for(info, defines), of_text));
}

std::string ProgramCache::key_of(std::string_view file, const Defines& defines) const {
  std::string key(file);
  for (const auto& [name, value] : defines) {
    key += ' ';
    key += name;
    key += '=';
    key += value;
  }
  return key;
}

bool ProgramCache::has(std::string_view file, const Defines& defines) {
  const std::string key = key_of(file, defines);
  const std::lock_guard lock(mutex_);
  return programs_.contains(key) || of_kernels_.contains(key);
}

bool ProgramCache::has(const WantedKernels& wanted) {
  const std::string key = key_of(wanted.source.file, wanted.source.defines);
  const std::lock_guard lock(mutex_);
  if (programs_.contains(key)) return true;
  const auto built = of_kernels_.find(key);
  return built != of_kernels_.end() &&
         std::ranges::all_of(wanted.kernels, [&](const std::string& kernel) {
           return built->second.contains(kernel);
         });
}

Program ProgramCache::get(std::string_view file, const Defines& defines, std::string_view user) {
  const std::string key = key_of(file, defines);
  const std::lock_guard lock(mutex_);
  auto found = programs_.find(key);
  if (found == programs_.end()) {
    const auto start = std::chrono::steady_clock::now();
    found = programs_.emplace(key, build(text_of(file), defines, user)).first;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    add_time({file, defines, user}, seconds.count());
  }
  return found->second;
}

Kernel ProgramCache::kernel(const ProgramSource& source, const std::string& name) {
  Program program;
  if (has_parts_) {
    const std::lock_guard lock(mutex_);
    const auto of_file = of_kernels_.find(key_of(source.file, source.defines));
    if (of_file != of_kernels_.end()) {
      const auto found = of_file->second.find(name);
      if (found != of_file->second.end()) program = found->second;
    }
  }
  if (!program) program = get(source.file, source.defines, source.user);
  return context_.kernel(program, name.c_str());
}

void ProgramCache::prepare(std::span<const WantedKernels> wanted) {
  if (!has_parts_) {
    for (const WantedKernels& of_file : wanted)
      get(of_file.source.file, of_file.source.defines, of_file.source.user);
    return;
  }
  const std::lock_guard lock(mutex_);
  build_parts(missing_parts(wanted));
}

void ProgramCache::take_kept(const WantedKernels& wanted) {
  const std::lock_guard lock(mutex_);
  const std::vector<Part> parts = missing_parts({&wanted, 1});
  const bool are_kept = std::ranges::all_of(parts, [&](const Part& part) {
    return context_.is_kept(text_of_part(part), options_for(info_, part.source->defines));
  });
  if (are_kept) build_parts(parts);
}

/// The heavy kernels come first, each file's in their order: with them, whoever builds has the long
/// builds behind it early.
std::vector<ProgramCache::Part> ProgramCache::missing_parts(
    std::span<const WantedKernels> wanted) const {
  std::vector<Part> parts, parts_of_others;
  for (const WantedKernels& of_file : wanted) {
    const std::string key = key_of(of_file.source.file, of_file.source.defines);
    if (programs_.contains(key)) continue;
    std::set<std::string> others = of_file.kernels;
    if (const auto built = of_kernels_.find(key); built != of_kernels_.end()) {
      std::erase_if(others, [&](const auto& kernel) { return built->second.contains(kernel); });
    }
    for (const std::string_view heavy : of_file.heavy) {
      if (const auto found = others.find(std::string(heavy)); found != others.end()) {
        parts.push_back({&of_file.source, {*found}});
        others.erase(found);
      }
    }
    constexpr std::size_t most = tuning::most_kernels_of_part;
    for (std::size_t left = (others.size() + most - 1) / most; left > 0; --left) {
      const std::size_t size = (others.size() + left - 1) / left;
      const auto end = std::next(others.begin(), static_cast<std::ptrdiff_t>(size));
      parts_of_others.push_back({&of_file.source, {others.begin(), end}});
      others.erase(others.begin(), end);
    }
  }
  std::ranges::move(parts_of_others, std::back_inserter(parts));
  return parts;
}

std::string ProgramCache::text_of_part(const Part& part) const {
  return text_for(info_, with_kernels(text_of(part.source->file), part.kernels));
}

void ProgramCache::build_parts(const std::vector<Part>& parts) {
  std::vector<BuildJob> jobs;
  for (const Part& part : parts) {
    jobs.push_back({options_for(info_, part.source->defines), text_of_part(part)});
  }
  const auto enter = [&](std::size_t job, const Program& program, double seconds) {
    const ProgramSource& source = *parts[job].source;
    std::map<std::string, Program>& kernels = of_kernels_[key_of(source.file, source.defines)];
    for (const std::string& kernel : parts[job].kernels) kernels.emplace(kernel, program);
    add_time(source, seconds);
  };
  const auto seconds_from = [](std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto waited = std::chrono::steady_clock::now();  // until then, for what was built before
  if (info_.cuda_ordinal >= 0) {
    // OpenCL's compiler takes one program after another; CUDA's linker goes on beside it.
    std::vector<Program> programs(parts.size());
    parallel_for(std::ssize(parts), info_.limits.threads, [&](index_t i, int) {
      const auto job = static_cast<std::size_t>(i);
      programs[job] = build_text(jobs[job].text, jobs[job].options, parts[job].source->user);
    });
    const double each = seconds_from(waited) / static_cast<double>(parts.size());
    for (std::size_t job = 0; job < parts.size(); ++job) enter(job, programs[job], each);
    return;
  }
  Builders builders(jobs, builders_, info_.index);
  while (const auto next = builders.next()) {
    const auto start = std::chrono::steady_clock::now();
    const BuildJob& job = jobs[next->job];
    const Program program = build_text(job.text, job.options, parts[next->job].source->user);
    // What a builder has built comes from the driver's cache, unless there is none.
    if (next->is_built && std::chrono::steady_clock::now() - start > tuning::slowest_cached_program)
      builders.give_up();
    enter(next->job, program, seconds_from(waited));
    waited = std::chrono::steady_clock::now();
  }
}

/// All parts of a file count as one program.
void ProgramCache::add_time(const ProgramSource& source, double seconds) {
  const std::string id = program_id(info_, source.file, source.defines);
  const auto found = std::ranges::find(times_, id, &ProgramTime::id);
  if (found == times_.end()) {
    times_.push_back({id, std::string(source.user), seconds});
  } else {
    found->seconds += seconds;
  }
}

std::vector<ProgramTime> ProgramCache::times() {
  const std::lock_guard lock(mutex_);
  return times_;
}

Program ProgramCache::build(std::string_view text, const Defines& defines,
                            std::string_view user) const {
  return build_text(text_for(info_, text), options_for(info_, defines), user);
}

Program ProgramCache::build_text(const std::string& text, const std::string& options,
                                 std::string_view user) const {
  const DriverScope driver;
  try {
    return context_.build(text, options);
  } catch (const DeviceFailure& failure) {
    throw DeviceError(
        fmt::format("{}: its kernels do not build on {} ({}, options {}):{}", user, info_.text(),
                    failure.what(), options, first_lines(failure.log(), 5)),
        "--backend cpu works without this device");
  }
}

}  // namespace qrtool
