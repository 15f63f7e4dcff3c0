// SPDX-License-Identifier: Apache-2.0
// opencl_devices.cpp: the devices that OpenCL lists.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

#include "core/machine/driver_scope.hpp"
#include "core/text.hpp"
#include "gpu/host/opencl_driver.hpp"
#include "gpu/host/probe.hpp"
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

/// The UUID as 32 hexadecimal digits; empty where the device does not say it.
std::string uuid_of(const cl::Device& device, const std::string& extensions) {
  constexpr cl_device_info device_uuid = 0x106A;
  std::array<unsigned char, 16> uuid{};
  const bool is_there =
      has_extension(extensions, "cl_khr_device_uuid") &&
      clGetDeviceInfo(device(), device_uuid, sizeof(uuid), uuid.data(), nullptr) == CL_SUCCESS;
  return is_there ? fmt::format("{:02x}", fmt::join(uuid, "")) : std::string();
}

/// The address "domain:bus:device" of an NVIDIA GPU in hexadecimal digits; else empty.
std::string pci_of(const cl::Device& device) {
  constexpr cl_device_info bus_nv = 0x4008, slot_nv = 0x4009, domain_nv = 0x400A;
  cl_uint bus = 0, slot = 0, domain = 0;
  const auto ask = [&](cl_device_info what, cl_uint& answer) {
    return clGetDeviceInfo(device(), what, sizeof(answer), &answer, nullptr) == CL_SUCCESS;
  };
  if (!ask(bus_nv, bus) || !ask(slot_nv, slot) || !ask(domain_nv, domain)) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}", domain, bus, slot >> 3);  // below: the function
}

/// What QRTOOL_PRETEND, a list of words for tests, changes in what a device says of itself:
/// no-float64, slow-float64, no-denormals, local-memory=BYTES, piece=BYTES, cuda.
void pretend(DeviceInfo& info) {
  const char* words = std::getenv("QRTOOL_PRETEND");
  if (words == nullptr) return;
  std::istringstream list{words};
  for (std::string word; std::getline(list, word, ',');) {
    constexpr std::string_view local = "local-memory=", piece = "piece=";
    if (word == "no-float64") info.limits.has_float64 = false;
    if (word == "slow-float64") info.float64_share = 1.0 / 64;
    if (word == "no-denormals") info.has_denormals = false;
    if (word == "cuda")  // is the device with this number of tests/support/cuda_stand_in
      info.uuid =
          fmt::format("{:02x}", fmt::join(fmt::format("qrtool-standin-{}", info.index), ""));
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
  info.uuid = uuid_of(device, extensions);
  if (capability > 0) info.pci = pci_of(device);
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

/// Kernels of a device as NVIDIA's compiler makes them: PTX.
class Compiler {
 public:
  explicit Compiler(cl::Device device) : device_(std::move(device)) {}

  std::string operator()(const std::string& text, const std::string& options) {
    const std::lock_guard lock(mutex_);
    if (!context_) context_ = open_opencl(device_);
    return binary_of(context_->build(text, options), device_);
  }

 private:
  cl::Device device_;
  std::mutex mutex_;
  std::unique_ptr<DeviceContext> context_;
};

/// The platforms of the loader. NVIDIA's driver is asked itself where no file names it to the
/// loader, as in many containers.
std::vector<cl::Platform> all_platforms() {
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error&) {  // there is none
  }
  const bool has_nvidia = std::ranges::any_of(platforms, [](const cl::Platform& platform) {
    return platform.getInfo<CL_PLATFORM_NAME>().starts_with("NVIDIA");
  });
  void* const library = has_nvidia ? nullptr : dlopen("libnvidia-opencl.so.1", RTLD_NOW);
  if (library == nullptr) return platforms;
  using Find = void* (*)(const char*);
  using List = cl_int (*)(cl_uint, cl_platform_id*, cl_uint*);
  const auto find = reinterpret_cast<Find>(dlsym(library, "clGetExtensionFunctionAddress"));
  const auto list =
      find == nullptr ? nullptr : reinterpret_cast<List>(find("clIcdGetPlatformIDsKHR"));
  cl_platform_id platform = nullptr;
  if (list != nullptr && list(1, &platform, nullptr) == CL_SUCCESS)
    platforms.emplace_back(platform);
  return platforms;
}

/// Whether kernels can be built for the device and run on it.
bool is_usable(const cl::Device& device) {
  return device.getInfo<CL_DEVICE_AVAILABLE>() != CL_FALSE &&
         device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>() != CL_FALSE;
}

}  // namespace

void prepare_drivers() { static const PrivateCache cache; }

std::vector<DeviceHandle> devices_of_opencl() {
  const DriverScope driver;
  std::vector<DeviceHandle> handles;
  for (const cl::Platform& platform : all_platforms()) {
    std::vector<cl::Device> devices;
    try {  // a platform may have no devices
      platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
      const std::string name = trimmed(platform.getInfo<CL_PLATFORM_NAME>());
      for (const cl::Device& device : devices) {
        if (!is_usable(device)) continue;
        const int index = static_cast<int>(handles.size());
        handles.push_back({described(device, name, index), [device] { return open_opencl(device); },
                           [compiler = std::make_shared<Compiler>(device)](
                               const std::string& text, const std::string& options) {
                             return (*compiler)(text, options);
                           }});
      }
    } catch (const cl::Error&) {
      continue;
    }
  }
  return handles;
}

}  // namespace qrtool
