// SPDX-License-Identifier: Apache-2.0
// engine.hpp: a device's queues and buffers, and the steps of a sub-chunk there: the kernels of a
// variant, reflectors for the matrices that it leaves to them, the check.
#pragma once

#include <vector>

#include "gpu/host/buffers.hpp"
#include "gpu/host/device.hpp"
#include "gpu/host/launcher.hpp"
#include "gpu/host/session.hpp"

namespace qrtool {

/// What a backend keeps from call to call.
struct Engine {
  Engine(const DeviceInfo& device_info, Session& device_session);

  /// Enqueues the stages of `buffers` in the compute queue; `after`: an event at the end.
  void factor(const GpuVariant& variant, const FactorJob& job, cl::Event& after);
  void check(const GpuVariant& variant, const DeviceBuffers& buffers, cl::Event& after);
  /// Waits for all queues; errors are not of interest any more.
  void drain() noexcept;

  DeviceInfo info;
  Session& session;
  cl::CommandQueue upload, compute, download;
  KernelCache kernels;
  BufferPool pool;

 private:
  /// The matrices whose route in job.work[0] is `reflectors`, by the variant that `first` names for
  /// them. False where the host has seen that there is none.
  bool enqueue_again(const GpuVariant& first, const FactorJob& job);
  /// Matrix b of a job, in buffers of its own.
  void enqueue_one(const GpuVariant& variant, const FactorJob& job, index_t b, Launcher& launch);
  /// Waits for the compute queue.
  std::vector<cl_int> read_routes(const FactorJob& job);
};

}  // namespace qrtool
