// SPDX-License-Identifier: Apache-2.0
// make_backend.cpp: lists the backends and chooses among them.
#include "app/run/make_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/process/console.hpp"
#include "app/run/opencl.hpp"
#include "app/run/several_devices.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/cpu/cpu_rates.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// The seconds in which a device makes its platform and context and takes its kernels from the
/// driver's cache. This is rough, since the choice matters only where the two ways differ much.
constexpr double device_start_seconds = 0.5;

/// Takes the devices that --device names in turn, by the rank's number.
DeviceInfo device_of_rank(const BackendRequest& request) {
  const std::vector<DeviceInfo> devices =
      choose_opencl_devices(request.wanted_device() == "all" ? "" : request.wanted_device());
  return devices[static_cast<std::size_t>(request.rank) % devices.size()];
}

bool are_equal(const DeviceInfo& one, const DeviceInfo& other) {
  return one.platform == other.platform && one.name == other.name && one.driver == other.driver;
}

/// Takes the first GPU, or the first device where there is no GPU, and all devices equal to it.
std::unique_ptr<Backend> all_devices(Limits host) {
  std::vector<DeviceInfo> equal = choose_opencl_devices("");
  const DeviceInfo first = equal.front();
  std::erase_if(equal, [&](const DeviceInfo& device) { return !are_equal(device, first); });
  host.threads = std::max(1, host.threads / static_cast<int>(equal.size()));
  std::vector<std::unique_ptr<Backend>> backends;
  for (const DeviceInfo& device : equal) backends.push_back(make_opencl_backend(device, host));
  return std::make_unique<SeveralDevices>(std::move(backends));
}

std::unique_ptr<Backend> device_backend(const BackendRequest& request, const Limits& limits) {
  if (request.wanted_device() == "all" && request.ranks == 1) return all_devices(limits);
  return make_opencl_backend(device_of_rank(request), limits);
}

BackendChoice automatic_backend(const BackendRequest& request, const Problem& problem,
                                const Limits& limits) {
  std::vector<DeviceInfo> own;  // the rank's, where there is one
  if (is_worth_a_device(problem, limits) && !opencl_devices().empty())
    own.push_back(device_of_rank(request));
  AutomaticChoice choice = choose_automatically(problem, limits, own);
  if (choice.device == nullptr)
    return {std::make_unique<CpuBackend>(limits), std::move(choice.reason)};
  return {make_opencl_backend(*choice.device, limits), std::move(choice.reason)};
}

BackendChoice cpu_backend(const BackendRequest&, const Problem&, const Limits& limits) {
  return {std::make_unique<CpuBackend>(limits), "asked for"};
}

BackendChoice opencl_backend(const BackendRequest& request, const Problem&, const Limits& limits) {
  return {device_backend(request, limits), "asked for"};
}

/// A word of --backend and the function that makes the backend.
struct BackendKind {
  std::string_view name;
  BackendChoice (*make)(const BackendRequest&, const Problem&, const Limits&);
};
constexpr BackendKind kinds[] = {{.name = "auto", .make = automatic_backend},
                                 {.name = "cpu", .make = cpu_backend},
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
  if (backend == "auto" || find_kind(backend) == nullptr)
    throw UsageError(fmt::format(
        "--variant: '{}' names an unknown backend; allowed are cpu, opencl", escape(variant)));
  return backend;
}

/// Finds the one backend that --backend, --device and --variant mean together.
const BackendKind& requested_backend(const BackendRequest& request) {
  std::string name = request.name;
  const auto imply = [&](const std::string& implied, const std::string& by) {
    if (implied.empty()) return;
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

bool is_worth_a_device(const Problem& problem, const Limits& host) {
  return cpu_seconds(problem, host.threads) > device_start_seconds;
}

AutomaticChoice choose_automatically(const Problem& problem, const Limits& host,
                                     std::span<const DeviceInfo> devices) {
  if (!is_worth_a_device(problem, host))
    return {nullptr, "the CPU is done before a device has started"};
  const auto gpu = std::find_if(devices.begin(), devices.end(),
                                [](const DeviceInfo& device) { return !device.limits.is_cpu; });
  if (gpu == devices.end()) return {nullptr, "there is no GPU"};
  if (!gpu->limits.has_float64)
    return {nullptr, fmt::format("{} has no float64, which the check needs", gpu->name)};
  const double on_cpu = cpu_seconds(problem, host.threads);
  const double on_gpu = device_start_seconds + opencl_seconds(problem, *gpu);
  const std::string times =
      fmt::format("about {:.1f} s with its start and copies, the CPU {:.1f} s", on_gpu, on_cpu);
  if (on_gpu >= on_cpu) return {nullptr, fmt::format("{} takes {}", gpu->name, times)};
  return {&*gpu, times};
}

BackendChoice make_backend(const BackendRequest& request, const Problem& problem,
                           const Limits& limits) {
  return requested_backend(request).make(request, problem, limits);
}

BackendChoice choose_backend(const BackendRequest& request, const Problem& problem,
                             const Limits& limits, bool is_verbose) {
  BackendChoice choice = make_backend(request, problem, limits);
  if (is_verbose)
    print_message(fmt::format("backend {}: {}", choice.backend->name(), choice.reason));
  return choice;
}

}  // namespace qrtool
