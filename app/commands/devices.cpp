// SPDX-License-Identifier: Apache-2.0
// devices.cpp: `qrtool devices` lists the devices and the variants that would run there.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/engine/automatic.hpp"
#include "app/engine/opencl.hpp"
#include "app/engine/timings.hpp"
#include "app/process/console.hpp"
#include "app/run/backends/opencl_process.hpp"
#include "app/run/backends/timings_file.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// The CPU or an OpenCL device, on which problems can run.
struct Processor {
  std::string title;
  std::string limits_text;
  std::string drivers_text = {};  // by which drivers it is reached; empty: there is one
  std::string cuda_name = {};     // "cuda:0"; empty: not by CUDA
  std::span<const Variant> variants;
  Limits limits;
};

std::string_view name_of(SubGroups body) {
  switch (body) {
    case SubGroups::nvidia_ptx:
      return "sub-groups by PTX";
    case SubGroups::khr_shuffle:
      return "sub-groups by cl_khr_subgroups";
    case SubGroups::local_memory:
      return "sub-groups by local memory";
  }
  return "";
}

Processor cpu_processor(const Limits& host) {
  return {.title = fmt::format("cpu  {}", CpuBackend(host).device()),
          .limits_text =
              fmt::format("{} threads, {} of memory", host.threads, format_bytes(host.host_bytes)),
          .variants = cpu_variants(),
          .limits = host};
}

/// What float64 is worth there, and what sums of float32 are formed in.
std::string float64_text(const DeviceInfo& device) {
  if (!device.limits.has_float64) return "no float64, sums of float32 in pairs";
  if (!device.float64_share) return "float64";
  return fmt::format("float64 at {:.2g} of float32's rate{}", *device.float64_share,
                     device.limits.slow_float64 ? ", sums of float32 in pairs" : "");
}

/// The drivers that reach a GPU of NVIDIA. Others have one alone.
std::string drivers_of(const DeviceInfo& device, const CudaReach& cuda) {
  if (device.uuid.empty() && device.pci.empty()) return {};
  return cuda.name.empty()
             ? fmt::format("by OpenCL, not by CUDA: {}", cuda.why_not)
             : fmt::format("by OpenCL, and by CUDA as {}, which takes arrays on the device",
                           cuda.name);
}

Processor device_processor(const DeviceInfo& device, const Limits& host) {
  const CudaReach cuda = cuda_reach(device);
  Limits limits = device.limits;
  limits.host_bytes = host.host_bytes;
  limits.threads = host.threads;
  return {.title = fmt::format("{}    {}, {}: {}, driver {}", device.index, escape(device.name),
                               limits.is_cpu ? "a CPU" : "a GPU", escape(device.platform),
                               escape(device.driver)),
          .limits_text = fmt::format(
              "{} of memory, buffers to {}, local memory {}, {} units, {}, {}",
              format_bytes(device.memory_bytes), format_bytes(limits.max_allocation_bytes),
              format_bytes(limits.local_bytes), limits.compute_units, float64_text(device),
              name_of(device.sub_groups)),
          .drivers_text = drivers_of(device, cuda),
          .cuda_name = cuda.name,
          .variants = list_opencl_variants(),
          .limits = limits};
}

/// Describes a processor and, if `is_verbose`, the purpose of each variant.
std::string describe(const Processor& processor, const Problem& problem, bool is_verbose) {
  std::string text = fmt::format("{}\n     {}\n", processor.title, processor.limits_text);
  if (!processor.drivers_text.empty()) text += fmt::format("     {}\n", processor.drivers_text);
  for (const Variant& variant : processor.variants) {
    const Fit fit = variant.takes(problem, processor.limits);
    text += fmt::format("     {} {:<16} {}{}\n", fit.ok ? "+" : "-", variant.name, fit.reason,
                        variant.only_when_forced ? " (only when forced)" : "");
    if (is_verbose) text += fmt::format("                        {}\n", variant.summary);
  }
  return text;
}

Json to_json(const Processor& processor, const Problem& problem) {
  Json variants = Json::array();
  for (const Variant& variant : processor.variants) {
    const Fit fit = variant.takes(problem, processor.limits);
    variants.push_back({{"name", variant.name},
                        {"summary", variant.summary},
                        {"fits", fit.ok},
                        {"reason", fit.reason},
                        {"only_when_forced", variant.only_when_forced}});
  }
  return {{"name", processor.title},
          {"limits", processor.limits_text},
          {"cuda", processor.cuda_name.empty() ? Json() : Json(processor.cuda_name)},
          {"variants", variants}};
}

std::string automatic_text(const AutomaticChoice& choice) {
  const std::string chosen =
      choice.device == nullptr ? "cpu" : fmt::format("opencl on device {}", choice.device->index);
  return fmt::format("--backend auto takes {}: {}", chosen, choice.reason);
}

std::string text_of(const KeptDevice& device) {
  double built = 0;
  for (const KeptProgram& program : device.programs) built += program.first_seconds;
  std::string text =
      fmt::format("{}, driver {}\n     start {:.2f} s; {} program{}, built in {:.2f} s\n",
                  escape(device.name), escape(device.driver), device.start_seconds,
                  device.programs.size(), device.programs.size() == 1 ? "" : "s", built);
  for (const KeptProgram& program : device.programs) {
    text += fmt::format("     {:<18} {:.3f} s", escape(program.user), program.first_seconds);
    if (program.least_seconds) text += fmt::format(", again {:.3f} s", *program.least_seconds);
    text += "\n";
  }
  for (const KeptSample& sample : device.samples)
    text += fmt::format("     measured: {} of {}x{}, {}, {} in {:.2g} s\n",
                        format_count(sample.problem.count), sample.problem.m, sample.problem.n,
                        name_of(sample.problem.type), sample.problem.wants_q() ? "Q and R" : "R",
                        sample.seconds);
  return text;
}

/// Prints the times of earlier runs.
ExitCode show_timings(const DevicesOptions& o) {
  const std::optional<std::string> path = timings_path();
  const Timings timings = load_timings();
  if (o.json) {
    Json json = Json::parse(timings.to_text());
    json["file"] = path ? Json(*path) : Json();
    write_json(json);
    return ExitCode::good;
  }
  if (o.quiet) return ExitCode::good;
  for (const KeptDevice& device : timings.devices()) write_stdout(text_of(device));
  if (!path)
    write_stdout("no times are kept: QRTOOL_TIMINGS is empty, or there is no home\n");
  else
    write_stdout(fmt::format("{}: {}\n", escape(*path),
                             timings.devices().empty()
                                 ? "no times are kept yet"
                                 : "qrtool devices --forget removes these times"));
  return ExitCode::good;
}

ExitCode forget(const DevicesOptions& o) {
  const bool was_there = forget_timings();
  const std::optional<std::string> path = timings_path();
  if (o.json) {
    write_json({{"schema", "qrtool.forget/1"},
                {"file", path ? Json(*path) : Json()},
                {"forgot", was_there}});
  } else if (!o.quiet) {
    write_stdout(was_there ? fmt::format("removed {}\n", escape(*path)) : "no times were kept\n");
  }
  return ExitCode::good;
}

}  // namespace

ExitCode run_devices(const DevicesOptions& o) {
  if (o.timings) return show_timings(o);
  if (o.forget) return forget(o);
  if (o.builds) return build_kernels(o);
  Problem problem{.count = 1, .m = o.m, .n = o.n, .type = o.type};
  for (const index_t extent : o.leading) problem.count *= extent;

  const Limits host = host_limits({}, 0);
  const std::vector<DeviceInfo> devices = opencl_devices();
  std::vector<Processor> processors{cpu_processor(host)};
  for (const DeviceInfo& device : devices) processors.push_back(device_processor(device, host));
  const AutomaticChoice choice = choose_automatically(problem, host, devices, load_timings());

  if (o.json) {
    Json list = Json::array();
    for (const Processor& processor : processors) list.push_back(to_json(processor, problem));
    write_json({{"schema", "qrtool.devices/1"},
                {"shape", {problem.count, problem.m, problem.n}},
                {"type", name_of(problem.type)},
                {"places", list},
                {"auto", choice.device == nullptr ? Json("cpu") : Json(choice.device->index)},
                {"reason", choice.reason}});
    return ExitCode::good;
  }
  if (o.quiet) return ExitCode::good;
  for (const Processor& processor : processors)
    write_stdout(describe(processor, problem, o.verbose));
  if (devices.empty()) write_stdout("no OpenCL device; the CPU does everything\n");
  for (const std::string& name : cuda_devices_beside(devices))
    write_stdout(
        fmt::format("{}: not among OpenCL's devices, whose compiler makes the kernels\n", name));
  write_stdout(fmt::format("for {} of {}x{}, {} (+ takes it, - does not):\n  {}\n",
                           format_count(problem.count), problem.m, problem.n, name_of(problem.type),
                           automatic_text(choice)));
  return ExitCode::good;
}

}  // namespace qrtool
