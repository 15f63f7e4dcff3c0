// SPDX-License-Identifier: Apache-2.0
// device.cpp: lists and chooses OpenCL devices.
#include "gpu/host/device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "core/text.hpp"
#include "gpu/host/opencl_driver.hpp"
#include "gpu/host/probe.hpp"
#include "gpu/host/session.hpp"
#include "gpu/host/start_session.hpp"
#include "gpu/host/tuning.hpp"

namespace qrtool {
namespace {

/// PoCL has no devices if it cannot write to its cache ($XDG_CACHE_HOME/pocl or ~/.cache/pocl). In
/// this case it gets a private folder, which is removed at exit.
class PrivateCache {
 public:
  PrivateCache() {
    if (std::getenv("POCL_CACHE_DIR") != nullptr || default_is_writable()) return;
    std::string folder = (std::filesystem::temp_directory_path() / "qrtool-pocl-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    setenv("POCL_CACHE_DIR", folder_.c_str(), 1);
  }
  ~PrivateCache() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

 private:
  static bool default_is_writable() {
    namespace fs = std::filesystem;
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (cache == nullptr && home == nullptr) return false;
    const fs::path base = cache != nullptr ? fs::path(cache) : fs::path(home) / ".cache";
    std::error_code error;
    const fs::path folder = base / "pocl" / "kcache";
    fs::create_directories(folder, error);
    return access(folder.c_str(), W_OK | X_OK) == 0;
  }

  std::string folder_;
};

std::string trimmed(std::string text) {
  while (!text.empty() &&
         (text.back() == '\0' || std::isspace(static_cast<unsigned char>(text.back())) != 0)) {
    text.pop_back();
  }
  return escape(text);
}

bool has_extension(const std::string& extensions, std::string_view name) {
  return (" " + extensions + " ").find(fmt::format(" {} ", name)) != std::string::npos;
}

/// NVIDIA's compute capability (10 major + minor); 0 for other devices.
int compute_capability(const cl::Device& device, const std::string& extensions) {
  if (!has_extension(extensions, "cl_nv_device_attribute_query")) return 0;
  constexpr cl_device_info major_nv = 0x4000, minor_nv = 0x4001;
  cl_uint major = 0, minor = 0;
  clGetDeviceInfo(device(), major_nv, sizeof(major), &major, nullptr);
  clGetDeviceInfo(device(), minor_nv, sizeof(minor), &minor, nullptr);
  return static_cast<int>(10 * major + minor);
}

/// What QRTOOL_PRETEND, a list of words for tests, changes in what a device says of itself:
/// no-float64, no-denormals, local-memory=BYTES, piece=BYTES.
void pretend(DeviceInfo& info) {
  const char* words = std::getenv("QRTOOL_PRETEND");
  if (words == nullptr) return;
  std::istringstream list{words};
  for (std::string word; std::getline(list, word, ',');) {
    constexpr std::string_view local = "local-memory=", piece = "piece=";
    if (word == "no-float64") info.limits.has_float64 = false;
    if (word == "no-denormals") info.has_denormals = false;
    if (word.starts_with(local)) info.limits.local_bytes = std::stoul(word.substr(local.size()));
    if (word.starts_with(piece)) info.piece_bytes = std::stoul(word.substr(piece.size()));
  }
}

DeviceInfo describe(const cl::Device& device, const std::string& platform, int index) {
  DeviceInfo info;
  info.index = index;
  info.platform = platform;
  info.name = trimmed(device.getInfo<CL_DEVICE_NAME>());
  info.vendor = trimmed(device.getInfo<CL_DEVICE_VENDOR>());
  info.driver = trimmed(device.getInfo<CL_DRIVER_VERSION>());
  info.version = trimmed(device.getInfo<CL_DEVICE_VERSION>());
  info.memory_bytes = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
  info.cache_bytes = device.getInfo<CL_DEVICE_GLOBAL_MEM_CACHE_SIZE>();
  info.limits.device_bytes = info.memory_bytes / 100 * tuning::device_memory_percent;
  info.limits.max_allocation_bytes = device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
  info.limits.local_bytes = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
  info.limits.max_group = static_cast<int>(
      std::min<std::size_t>(device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>(), 1 << 20));
  info.limits.compute_units = static_cast<int>(device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
  // An accelerator that is no GPU is treated as a CPU, and so is what calls itself all three.
  const cl_device_type type = device.getInfo<CL_DEVICE_TYPE>();
  info.limits.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0 || (type & CL_DEVICE_TYPE_GPU) == 0;
  const std::string extensions = device.getInfo<CL_DEVICE_EXTENSIONS>();
  info.limits.has_float64 = device.getInfo<CL_DEVICE_DOUBLE_FP_CONFIG>() != 0;
  const int capability = compute_capability(device, extensions);
  info.limits.has_nvidia_mma = capability >= 80;
  const cl_device_fp_config single = device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>();
  info.exact_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  info.has_denormals = (single & CL_FP_DENORM) != 0;
  info.piece_bytes = tuning::piece_bytes;
  pretend(info);
  settle_bodies(info, [&] { return open_opencl(device); },
                {.capability = capability,
                 .has_shuffles = has_extension(extensions, "cl_khr_subgroups") &&
                                 has_extension(extensions, "cl_khr_subgroup_shuffle")});
  return info;
}

/// The same, found once in a process: the bodies may take small programs to find.
const DeviceInfo& described(const cl::Device& device, const std::string& platform, int index) {
  static std::mutex mutex;
  static std::map<cl_device_id, DeviceInfo> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(device());
  if (found != known.end()) return found->second;
  return known.emplace(device(), describe(device, platform, index)).first->second;
}

/// Whether kernels can be built for the device and run on it.
bool is_usable(const cl::Device& device) {
  return device.getInfo<CL_DEVICE_AVAILABLE>() != CL_FALSE &&
         device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>() != CL_FALSE;
}

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

/// Asks every platform.
std::vector<DeviceHandle> ask_for_devices() {
  const DriverScope driver;
  std::vector<DeviceHandle> handles;
  std::vector<cl::Platform> platforms;
  // Without a platform the loader returns an error, and a platform may have no devices.
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error&) {
    return handles;
  }
  for (const cl::Platform& platform : platforms) {
    std::vector<cl::Device> devices;
    try {
      platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
      const std::string name = trimmed(platform.getInfo<CL_PLATFORM_NAME>());
      for (const cl::Device& device : devices) {
        if (!is_usable(device)) continue;
        const int index = static_cast<int>(handles.size());
        handles.push_back(
            {described(device, name, index), [device] { return open_opencl(device); }});
      }
    } catch (const cl::Error&) {
      continue;
    }
  }
  return handles;
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

std::optional<bool> has_fast_float64(std::string_view name, int capability) {
  // P100, V100, A100, H100 and H200, B100 and B200.
  constexpr std::array capabilities{60, 70, 80, 90, 100};
  constexpr int newest_capability = 121;
  // Instinct MI50 and MI60, MI100, MI200, MI300, MI350.
  constexpr std::array<std::string_view, 7> architectures{"gfx906", "gfx908", "gfx90a", "gfx940",
                                                          "gfx941", "gfx942", "gfx950"};
  const std::string_view architecture = name.substr(0, name.find(':'));
  if (std::ranges::count(capabilities, capability) +
      std::ranges::count(architectures, architecture))
    return true;
  if (capability > 0 && capability <= newest_capability) return false;
  return std::nullopt;
}

void prepare_drivers() { static const PrivateCache cache; }

std::vector<DeviceHandle> device_handles() {
  prepare_drivers();
  const auto start = std::chrono::steady_clock::now();
  std::vector<DeviceHandle> handles = ask_for_devices();
  double none = 0;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  listing_seconds.compare_exchange_strong(none, seconds.count());
  return handles;
}

double first_listing_seconds() { return listing_seconds; }

std::string DeviceInfo::text() const { return fmt::format("{} (driver {})", name, driver); }

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices;
  for (const DeviceHandle& handle : device_handles()) devices.push_back(handle.info);
  return devices;
}

std::vector<DeviceInfo> choose_devices(std::span<const DeviceInfo> devices,
                                       std::string_view wanted) {
  if (devices.empty()) {
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
