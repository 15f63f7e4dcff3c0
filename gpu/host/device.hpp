// SPDX-License-Identifier: Apache-2.0
// device.hpp: lists OpenCL devices and finds the one that the user names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// The bodies of the sub-group operations (gpu/common/common.clh); a device runs one of them.
enum class SubGroups { local_memory = 0, nvidia_ptx = 1, khr_shuffle = 2 };

/// How a warp of 32 work-items multiplies blocks of float64 (gpu/common/nvidia.clh): by shuffles
/// and fma, or by NVIDIA's matrix instructions of capability 8.0 or 9.0.
enum class Float64Body { plain = 0, quads = 1, wide = 2 };

/// Number of work-items that can add values without local memory (WIDEST_SUM of common.clh).
int shuffle_lanes(SubGroups sub_groups);

/// Name and properties of one OpenCL device.
struct DeviceInfo {
  int index = 0;  // the number for --device
  std::string platform, name, vendor, driver, version;
  Limits limits;  // the device's fields; memory without the share that the driver needs
  std::uint64_t memory_bytes = 0;
  std::size_t cache_bytes = 0;  // of the largest level, as the driver counts
  std::size_t piece_bytes = 0;  // of a matrix that goes there in pieces
  SubGroups sub_groups = SubGroups::local_memory;
  std::string standard = "CL1.2";  // the version of OpenCL C in which kernels are built
  Float64Body float64_body = Float64Body::plain;
  /// The rate of float64 as a part of float32's, where it was measured (probe.hpp).
  std::optional<double> float64_share;
  bool has_denormals = true;    // float32 numbers below 2^-126 are not taken as 0
  bool exact_division = false;  // correctly rounded float32 division and square root are possible
  /// Where the GPU is: its UUID, and its address on the PCI bus, in hexadecimal digits; empty where
  /// the driver does not say so.
  std::string uuid, pci;
  /// The number by which CUDA's driver is to reach the GPU; -1: by OpenCL.
  int cuda_ordinal = -1;

  /// Name and driver, such as "NVIDIA H200 (driver 580.65)".
  std::string text() const;
};

/// The seconds in which a program was built, or was taken from the driver's own cache.
struct ProgramTime {
  std::string id;    // program_id()
  std::string user;  // the variant, or the step
  double seconds = 0;
};

/// What a device has taken in this process.
struct DeviceTimes {
  DeviceInfo info;
  double start_seconds = 0;  // finding the devices, and the context
  std::vector<ProgramTime> programs;
};
/// Of every device that this process has used.
std::vector<DeviceTimes> device_times();

/// Whether a GPU is known to have float64 at half the rate of float32 or more: data-centre parts of
/// NVIDIA, by their compute capability (10 major + minor; 0 for others), and of AMD, by the
/// architecture with which the device's name begins ("gfx90a:sramecc+:xnack-"). Others are
/// measured.
bool has_fast_float64(std::string_view name, int capability);

/// Every device of every platform in OpenCL's order; an empty list without OpenCL.
std::vector<DeviceInfo> list_devices();

/// Whether CUDA's driver reaches a device: by which name ("cuda:0"), or why not, in a sentence.
struct CudaReach {
  std::string name, why_not;
};
CudaReach cuda_reach(const DeviceInfo& device);
/// The GPUs that CUDA lists and that none of `devices` is, as "cuda:1 (NVIDIA A100)". Kernels are
/// built by OpenCL's compiler, so that they cannot be used.
std::vector<std::string> cuda_devices_beside(std::span<const DeviceInfo> devices);

/// The error of a driver that was used before this process was forked.
class ForkError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The devices that `wanted` names, in their order, at least one. `wanted` is an index; or a part
/// of a name, where upper and lower case are equal, for all devices with that part; or "cuda:N" for
/// the GPU with this number in CUDA, which CUDA's driver is to reach. If it is empty, the result is
/// all GPUs, those with float64 first, or all devices if there is no GPU. Errors: DeviceError if
/// there is no device at all, or none with this name; the message lists the devices.
std::vector<DeviceInfo> choose_devices(std::string_view wanted);
/// The same for a given list; an index is a position in `devices`.
std::vector<DeviceInfo> choose_devices(std::span<const DeviceInfo> devices,
                                       std::string_view wanted);
/// The first device that `wanted` names.
DeviceInfo choose_device(std::string_view wanted);

}  // namespace qrtool
