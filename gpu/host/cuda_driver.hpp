// SPDX-License-Identifier: Apache-2.0
// cuda_driver.hpp: driver.hpp for CUDA's driver interface. Private to gpu/host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/host/driver.hpp"

namespace qrtool {

/// A GPU that CUDA lists.
struct CudaDevice {
  int ordinal = 0;
  std::string name;
  std::string uuid;          // 32 hexadecimal digits
  std::string pci;           // "domain:bus:device" in hexadecimal digits
  std::string architecture;  // "sm_90"
};

/// The GPUs; an empty list without CUDA, and `why` becomes the reason in a sentence. is_forked: the
/// reason is that CUDA was used before this process was forked. Errors: DeviceFailure.
std::vector<CudaDevice> cuda_devices(std::string& why, bool& is_forked);

/// The primary context of a GPU. `driver`: its version, of which built kernels are. `compile` makes
/// PTX, for programs that the cache on disk does not have. Errors: DeviceFailure.
std::unique_ptr<DeviceContext> open_cuda(const CudaDevice& device, const std::string& driver,
                                         CompileKernels compile);

}  // namespace qrtool
