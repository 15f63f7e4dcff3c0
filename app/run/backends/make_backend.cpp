// SPDX-License-Identifier: Apache-2.0
// make_backend.cpp: lists the backends and chooses among them.
#include "app/run/backends/make_backend.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "app/engine/opencl.hpp"
#include "app/process/console.hpp"
#include "app/run/backends/opencl_process.hpp"
#include "app/run/backends/run_cost.hpp"
#include "app/run/backends/several_devices.hpp"
#include "app/run/backends/timings_file.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Takes the devices that --device names in turn, by the rank's number.
DeviceInfo device_of_rank(const BackendRequest& request) {
  const std::vector<DeviceInfo> devices =
      choose_opencl_devices(request.wanted_device() == "all" ? "" : request.wanted_device());
  return devices[static_cast<std::size_t>(request.rank) % devices.size()];
}

bool are_equal(const DeviceInfo& one, const DeviceInfo& other) {
  return one.platform == other.platform && one.name == other.name && one.driver == other.driver;
}

/// Takes the first GPU, or the first device if there is no GPU, and all devices equal to it.
std::unique_ptr<Backend> all_devices(Limits host) {
  std::vector<DeviceInfo> equal = choose_opencl_devices("");
  const DeviceInfo first = equal.front();
  std::erase_if(equal, [&](const DeviceInfo& device) { return !are_equal(device, first); });
  host.threads = std::max(1, host.threads / static_cast<int>(equal.size()));
  std::vector<std::unique_ptr<Backend>> backends;
  for (const DeviceInfo& device : equal) backends.push_back(make_opencl_backend(device, host));
  return std::make_unique<SeveralDevices>(std::move(backends));
}

/// Whether `backend` belongs to this device and has these limits.
bool is_started(const std::shared_ptr<Backend>& backend, const DeviceInfo& device,
                const Limits& limits) {
  if (backend == nullptr || backend->device() != device.text()) return false;
  const Limits its = backend->limits();
  return its.host_bytes == limits.host_bytes && its.file_bytes == limits.file_bytes &&
         its.threads == limits.threads && its.ranks == limits.ranks &&
         its.has_scratch == limits.has_scratch;
}

/// Returns `before` with its queues and buffers, or a new backend.
std::shared_ptr<Backend> started(const DeviceInfo& device, const Limits& limits,
                                 const std::shared_ptr<Backend>& before) {
  if (is_started(before, device, limits)) return before;
  return make_opencl_backend(device, limits);
}

std::shared_ptr<Backend> device_backend(const BackendRequest& request, const Limits& limits,
                                        const std::shared_ptr<Backend>& before) {
  if (request.wanted_device() == "all" && request.ranks == 1) return all_devices(limits);
  if (request.portable)
    return make_opencl_backend(device_of_rank(request), limits, /*portable=*/true);
  return started(device_of_rank(request), limits, before);
}

/// Factors a small part of the work on the device, and keeps its time.
void measure_sample(Backend& backend, const Work& work, const DeviceInfo& device,
                    Timings& timings) {
  const SampleSeconds sample = time_sample(backend, work.problem, "");
  const Problem& p = sample.problem;
  const KeptSample kept{{p.count, p.m, p.n, p.type, p.wants_q() ? Mode::reduced : Mode::r},
                        sample.again};
  timings.add(device, kept);
  keep_sample(device, kept);
}

BackendChoice automatic_backend(const BackendRequest& request, const Work& work,
                                const Limits& limits, const std::shared_ptr<Backend>& before) {
  Timings timings = load_timings();
  std::vector<DeviceInfo> own;  // the rank's, where there is one
  if (is_worth_a_device(work, limits, timings) && !opencl_devices().empty())
    own.push_back(device_of_rank(request));
  std::shared_ptr<Backend> backend;
  // Without a file to keep it in, every run would measure, and choose by chance.
  if (!own.empty() && timings_path() && is_worth_a_sample(work, limits, own.front(), timings)) {
    backend = started(own.front(), limits, before);
    measure_sample(*backend, work, own.front(), timings);
    // The sample has the kernels of the work.
    for (const DeviceTimes& times : device_times()) timings.add(times);
  }
  AutomaticChoice choice = choose_automatically(work, limits, own, timings);
  if (choice.device == nullptr)
    return {std::make_unique<CpuBackend>(limits), std::move(choice.reason),
            std::move(choice.advice)};
  if (backend == nullptr) backend = started(*choice.device, limits, before);
  return {std::move(backend), std::move(choice.reason)};
}

BackendChoice cpu_backend(const BackendRequest&, const Work&, const Limits& limits,
                          const std::shared_ptr<Backend>&) {
  return {std::make_unique<CpuBackend>(limits), "asked for"};
}

BackendChoice opencl_backend(const BackendRequest& request, const Work&, const Limits& limits,
                             const std::shared_ptr<Backend>& before) {
  return {device_backend(request, limits, before), "asked for"};
}

BackendChoice gpu_backend(const BackendRequest& request, const Work& work, const Limits& limits,
                          const std::shared_ptr<Backend>& before) {
  BackendChoice choice = opencl_backend(request, work, limits, before);
  if (choice.backend->limits().is_cpu)
    throw DeviceError(fmt::format("--backend gpu: there is no GPU: OpenCL has {}, a CPU",
                                  choice.backend->device()),
                      "--backend opencl runs on it, and --backend cpu without OpenCL");
  return choice;
}

/// A word of --backend and the function that makes the backend.
struct BackendKind {
  std::string_view name;
  BackendChoice (*make)(const BackendRequest&, const Work&, const Limits&,
                        const std::shared_ptr<Backend>&);
};
constexpr BackendKind kinds[] = {{.name = "auto", .make = automatic_backend},
                                 {.name = "cpu", .make = cpu_backend},
                                 {.name = "gpu", .make = gpu_backend},
                                 {.name = "opencl", .make = opencl_backend}};

const BackendKind* find_kind(std::string_view name) {
  const auto* found = std::find_if(std::begin(kinds), std::end(kinds),
                                   [&](const BackendKind& kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : found;
}

/// Returns the backend with which a variant's name begins; empty without a variant.
std::string backend_of(const std::string& variant) {
  if (variant.empty()) return {};
  const std::size_t slash = variant.find('/');
  if (slash == std::string::npos)
    throw UsageError(fmt::format("--variant: '{}' is not BACKEND/NAME", escape(variant)),
                     "qrtool devices lists the variants");
  const std::string backend = variant.substr(0, slash);
  if (backend == "auto" || backend == "gpu" || find_kind(backend) == nullptr)
    throw UsageError(fmt::format(
        "--variant: '{}' names an unknown backend; allowed are cpu, opencl", escape(variant)));
  return backend;
}

/// Finds the one backend that --backend, --device and --variant mean together.
const BackendKind& requested_backend(const BackendRequest& request) {
  std::string name = request.name;
  const auto imply = [&](const std::string& implied, const std::string& by) {
    if (implied.empty()) return;
    if (name == "gpu" && implied == "opencl") return;  // it says more
    if (name != "auto" && name != implied)
      throw UsageError(fmt::format("--backend {} contradicts {}", name, by),
                       "leave --backend away");
    name = implied;
  };
  imply(backend_of(request.variant), "--variant " + escape(request.variant));
  if (!request.device.empty() && name == "cpu" && request.name == "auto")
    throw UsageError(fmt::format("--device contradicts --variant {}", escape(request.variant)));
  imply(request.device.empty() ? "" : "opencl", "--device");
  return *find_kind(name);
}

}  // namespace

void start_device(const BackendRequest& request) {
  if (!request.asks_for_device()) return;
  start_opencl(request.wanted_device() == "all" ? "" : request.wanted_device());
}

void require_named_device(const BackendRequest& request) {
  if (!request.device.empty() && request.device != "all") choose_opencl_devices(request.device);
}

BackendChoice make_backend(const BackendRequest& request, const Work& work, const Limits& limits,
                           const std::shared_ptr<Backend>& before) {
  const BackendKind& kind = requested_backend(request);
  const std::string objection = work.objection_to_devices();
  if (!objection.empty() && kind.make == automatic_backend)
    return {std::make_unique<CpuBackend>(limits), "solved on the CPU: " + objection};
  return kind.make(request, work, limits, before);
}

void note_advice(const BackendChoice& choice) {
  if (static bool is_said = false; !choice.advice.empty() && !std::exchange(is_said, true))
    print_message("note: " + choice.advice);
}

void note_slow_copies(const Backend& backend) {
  if (!opencl_is_pageable(backend)) return;
  rlimit limit{};
  const bool is_limited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  print_message(fmt::format(
      "note: {} could not lock memory{}; its copies took longer", name_of_device(backend),
      is_limited ? fmt::format(" (ulimit -l is {})", format_bytes(limit.rlim_cur)) : ""));
}

std::shared_ptr<Backend>& backend_until_exit() {
  static auto& backend = *new std::shared_ptr<Backend>;
  return backend;
}

std::string name_of_device(const Backend& backend) {
  if (backend.name() == "cpu") return "cpu";
  const std::string device = backend.device();
  return device.substr(0, device.find(" (driver")) + (backend.limits().is_cpu ? ", a CPU" : "");
}

BackendChoice choose_backend(const BackendRequest& request, const Work& work, const Limits& limits,
                             bool says_why, const std::shared_ptr<Backend>& before) {
  BackendChoice choice = make_backend(request, work, limits, before);
  if (says_why) print_message(fmt::format("backend {}: {}", choice.backend->name(), choice.reason));
  return choice;
}

}  // namespace qrtool
