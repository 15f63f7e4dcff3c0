// SPDX-License-Identifier: Apache-2.0
// device.cpp: lists and chooses devices.
#include "gpu/host/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <iterator>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "core/text.hpp"
#include "gpu/host/cuda_driver.hpp"
#include "gpu/host/opencl_driver.hpp"
#include "gpu/host/session.hpp"
#include "gpu/host/start_session.hpp"

namespace qrtool {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string hint_of_devices(std::span<const DeviceInfo> devices) {
  std::string hint = "devices:";
  for (const DeviceInfo& d : devices) hint += fmt::format(" {}: {};", d.index, d.name);
  hint.pop_back();
  return hint;
}

/// The devices for which `is_meant` is true.
template <class IsMeant>
std::vector<DeviceInfo> select(std::span<const DeviceInfo> devices, IsMeant is_meant) {
  std::vector<DeviceInfo> meant;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(meant), is_meant);
  return meant;
}

std::vector<DeviceInfo> find_devices(std::span<const DeviceInfo> devices, std::string_view wanted) {
  int index = 0;
  const char* end = wanted.data() + wanted.size();
  const auto [stop, error] = std::from_chars(wanted.data(), end, index);
  if (error == std::errc() && stop == end)
    return select(devices, [&](const DeviceInfo& d) { return d.index == index; });
  return select(devices, [word = lower_case(wanted)](const DeviceInfo& d) {
    return lower_case(d.name).find(word) != std::string::npos;
  });
}

/// The number in "cuda:N"; of "cuda" 0.
std::optional<int> cuda_ordinal_in(std::string_view wanted) {
  constexpr std::string_view cuda = "cuda";
  if (wanted == cuda) return 0;
  if (!wanted.starts_with(cuda) || wanted.substr(cuda.size(), 1) != ":") return std::nullopt;
  int ordinal = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [stop, error] = std::from_chars(wanted.data() + cuda.size() + 1, end, ordinal);
  return error == std::errc() && stop == end ? std::optional(ordinal) : std::nullopt;
}

/// Indices differ: CUDA_VISIBLE_DEVICES hides devices of CUDA, and a part of a GPU (MIG) is none of
/// OpenCL.
bool are_one(const DeviceInfo& device, const CudaDevice& of_cuda) {
  if (!device.uuid.empty()) return device.uuid == of_cuda.uuid;
  return !device.pci.empty() && device.pci == of_cuda.pci;
}

struct CudaList {
  std::vector<CudaDevice> devices;
  std::string why_none;
  bool is_forked = false;
};

CudaList list_cuda() {
  const DriverScope driver;
  CudaList list;
  try {
    list.devices = cuda_devices(list.why_none, list.is_forked);
  } catch (const DeviceFailure& failure) {
    list.why_none = failure.what();
  }
  return list;
}

DeviceInfo cuda_device(std::span<const DeviceInfo> devices, int ordinal) {
  const auto& [of_cuda, why, is_forked] = list_cuda();
  const std::string hint = "'qrtool devices' lists what there is";
  if (is_forked)
    throw ForkError(fmt::format("cuda:{}: {}", ordinal, why),
                    "start processes by spawn, not by fork");
  if (of_cuda.empty()) throw DeviceError(fmt::format("cuda:{}: {}", ordinal, why), hint);
  const auto found = std::ranges::find(of_cuda, ordinal, &CudaDevice::ordinal);
  if (found == of_cuda.end())
    throw DeviceError(
        fmt::format("there is no device 'cuda:{}'; CUDA lists {}", ordinal, of_cuda.size()), hint);
  const auto same = std::ranges::find_if(
      devices, [&](const DeviceInfo& device) { return are_one(device, *found); });
  if (same == devices.end())
    throw DeviceError(
        fmt::format("cuda:{} ({}) is not among OpenCL's devices, and OpenCL's compiler makes the "
                    "kernels",
                    ordinal, found->name),
        "a part of a GPU (MIG) is none; else install NVIDIA's OpenCL driver "
        "(libnvidia-opencl.so.1)");
  DeviceInfo info = *same;
  info.cuda_ordinal = ordinal;
  info.platform = "CUDA";  // its times are not those of OpenCL's driver
  return info;
}

/// Zero until the devices were asked for.
std::atomic<double> listing_seconds = 0;

}  // namespace

int shuffle_lanes(SubGroups sub_groups) {
  switch (sub_groups) {
    case SubGroups::nvidia_ptx:
      return 32;
    case SubGroups::khr_shuffle:
      return 8;
    case SubGroups::local_memory:
      break;
  }
  return 1;
}

bool has_fast_float64(std::string_view name, int capability) {
  // P100, V100, A100, H100 and H200, B100 and B200.
  constexpr std::array capabilities{60, 70, 80, 90, 100};
  // Instinct MI50 and MI60, MI100, MI200, MI300, MI350.
  constexpr std::array<std::string_view, 7> architectures{"gfx906", "gfx908", "gfx90a", "gfx940",
                                                          "gfx941", "gfx942", "gfx950"};
  const std::string_view architecture = name.substr(0, name.find(':'));
  return std::ranges::count(capabilities, capability) +
             std::ranges::count(architectures, architecture) >
         0;
}

std::vector<DeviceHandle> device_handles() {
  prepare_drivers();
  const auto start = std::chrono::steady_clock::now();
  std::vector<DeviceHandle> handles = devices_of_opencl();
  double none = 0;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  listing_seconds.compare_exchange_strong(none, seconds.count());
  return handles;
}

double first_listing_seconds() { return listing_seconds; }

OpenDevice how_to_open(const DeviceHandle& handle, const DeviceInfo& info) {
  if (info.cuda_ordinal < 0) return handle.open;
  return [info, compile = handle.compile] {
    const CudaList list = list_cuda();
    for (const CudaDevice& device : list.devices)
      if (device.ordinal == info.cuda_ordinal) return open_cuda(device, info.driver, compile);
    throw DeviceFailure(list.why_none.empty() ? "CUDA lists it no more" : list.why_none,
                        /*is_short=*/false);
  };
}

CudaReach cuda_reach(const DeviceInfo& device) {
  if (device.uuid.empty() && device.pci.empty()) return {{}, "it is no GPU of NVIDIA"};
  const CudaList list = list_cuda();
  for (const CudaDevice& of_cuda : list.devices)
    if (are_one(device, of_cuda)) return {fmt::format("cuda:{}", of_cuda.ordinal), {}};
  return {{}, list.why_none.empty() ? "CUDA does not list it" : list.why_none};
}

std::vector<std::string> cuda_devices_beside(std::span<const DeviceInfo> devices) {
  std::vector<std::string> names;
  for (const CudaDevice& of_cuda : list_cuda().devices)
    if (std::ranges::none_of(devices, [&](const auto& each) { return are_one(each, of_cuda); }))
      names.push_back(fmt::format("cuda:{} ({})", of_cuda.ordinal, escape(of_cuda.name)));
  return names;
}

std::string DeviceInfo::text() const {
  return fmt::format("{} ({}driver {})", name, cuda_ordinal < 0 ? "" : "CUDA, ", driver);
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices;
  for (const DeviceHandle& handle : device_handles()) devices.push_back(handle.info);
  return devices;
}

std::vector<DeviceInfo> choose_devices(std::span<const DeviceInfo> devices,
                                       std::string_view wanted) {
  if (devices.empty() && !cuda_ordinal_in(wanted)) {
    throw DeviceError("no OpenCL platform with a device found",
                      "install an OpenCL driver (pocl-opencl-icd runs on any CPU), or set "
                      "OCL_ICD_VENDORS to where the drivers are listed");
  }
  if (wanted.empty()) {
    std::vector<DeviceInfo> gpus =
        select(devices, [](const DeviceInfo& d) { return !d.limits.is_cpu; });
    std::ranges::stable_partition(gpus, [](const DeviceInfo& d) { return d.limits.has_float64; });
    return gpus.empty() ? std::vector(devices.begin(), devices.end()) : gpus;
  }
  if (const std::optional<int> ordinal = cuda_ordinal_in(wanted))
    return {cuda_device(devices, *ordinal)};
  const std::vector<DeviceInfo> found = find_devices(devices, wanted);
  if (found.empty()) {
    throw DeviceError(fmt::format("there is no OpenCL device '{}'", escape(wanted)),
                      hint_of_devices(devices));
  }
  return found;
}

std::vector<DeviceInfo> choose_devices(std::string_view wanted) {
  return choose_devices(list_devices(), wanted);
}

DeviceInfo choose_device(std::string_view wanted) { return choose_devices(wanted).front(); }

}  // namespace qrtool
