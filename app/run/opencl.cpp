// SPDX-License-Identifier: Apache-2.0
// opencl.cpp: the gpu layer as app sees it.
#include "app/run/opencl.hpp"

#include "app/process/signals.hpp"
#include "gpu/host/opencl_backend.hpp"
#include "gpu/rates.hpp"
#include "gpu/registry.hpp"

namespace qrtool {

std::vector<DeviceInfo> opencl_devices() {
  std::vector<DeviceInfo> devices = list_devices();
  take_back_abort();
  return devices;
}

std::vector<DeviceInfo> choose_opencl_devices(std::string_view wanted) {
  return choose_devices(opencl_devices(), wanted);
}

std::unique_ptr<Backend> make_opencl_backend(const DeviceInfo& device, const Limits& host) {
  OpenclOptions options;
  options.host = host;
  return std::make_unique<OpenclBackend>(device, options);
}

std::span<const Variant> list_opencl_variants() { return opencl_variants(); }

double opencl_seconds(const Problem& problem, const DeviceInfo& device) {
  return device_seconds(problem, device.limits);
}

std::vector<ProductRate> opencl_product_rates(const DeviceInfo& device) {
  return measure_products(device);
}

}  // namespace qrtool
