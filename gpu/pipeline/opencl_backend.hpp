// SPDX-License-Identifier: Apache-2.0
// opencl_backend.hpp: QR on an OpenCL device.
//
// A chunk is cut into sub-chunks that fit the device; upload, compute and download of adjacent
// sub-chunks overlap. The device factors every matrix and measures its errors. In each sub-chunk
// the host measures the first matrix, the last one and one in a thousand again. If the verdicts
// differ, the host's verdict is used, and the host also measures the other matrices of that
// sub-chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/backend.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

struct OpenclOptions {
  /// The user's limits for memory, threads, ranks and scratch. The backend sets the device's
  /// fields.
  Limits host;
  /// Test value used as the largest allocation; 0: the device's own value.
  std::size_t pretend_max_allocation = 0;
  /// Uses only the kernel bodies that run on any device, for tests on a GPU
  /// (QRTOOL_TEST_PORTABLE) and for `bench --portable`.
  bool portable = false;
};

struct FactorEngine;
class ResidentRun;

class OpenclBackend : public Backend {
 public:
  /// Errors: DeviceError.
  explicit OpenclBackend(const DeviceInfo& device, const OpenclOptions& options = {});
  ~OpenclBackend() override;

  std::string name() const override { return "opencl"; }
  std::string device() const override;
  std::span<const Variant> variants() const override;
  Limits limits() const override;

  /// Allocates pinned memory, which the device copies from and to at full speed; if the driver has
  /// none left, ordinary memory.
  HostMemory allocate(std::size_t bytes) override;
  /// Whether allocate() had to give ordinary memory.
  bool is_pageable() const;

  void free_workspace() override;

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

  /// 0 on a device that cannot measure errors, or takes small float32 numbers as 0.
  std::size_t piece_bytes() const override;
  AnyHeldMatrix hold_any(const Plan& plan) override;

  /// The queues and buffers of the device, for what runs beside factor() (gpu/solve).
  FactorEngine& engine() { return *engine_; }

 private:
  friend class ResidentRun;
  std::unique_ptr<FactorEngine> engine_;
};

/// Bytes that the device reads and writes in a second when it copies within its memory: the best of
/// three copies of `bytes`, or of what it allocates, by its clock. Errors: DeviceError.
double device_moved_bytes_per_second(OpenclBackend& backend, std::size_t bytes);

/// Writes so much memory of the device that nothing older is left in its caches. Errors:
/// DeviceError.
void flush_device_caches(OpenclBackend& backend);

/// Factors data that stays on the device, for measurements: it is uploaded once and may be factored
/// any number of times. All matrices must fit on the device at once.
class ResidentRun {
 public:
  struct Seconds {
    double factor = 0, check = 0;  // seconds, by the device's clock
  };

  /// Uploads the matrices, whose type is that of `plan`. `plan` must outlive the run. Errors:
  /// DeviceError, LimitError.
  template <class T>
  ResidentRun(OpenclBackend& backend, const Plan& plan, const BatchView<T>& a)
      : ResidentRun(backend, plan, bytes_of(a)) {}
  ~ResidentRun();

  /// Factors and, on a device with float64, checks every matrix once. Returns when the device has
  /// finished.
  Seconds run();

  /// The errors that the check of the last run measured, or that the host measures now where the
  /// device has no float64, and the routes that the matrices took, one report per matrix.
  std::vector<MatrixReport> report() const;

 private:
  /// All sizes of `a` count bytes, so that one code uploads every type.
  ResidentRun(OpenclBackend& backend, const Plan& plan, const BatchView<const std::byte>& a);
  template <class T>
  static BatchView<const std::byte> bytes_of(const BatchView<T>& a) {
    constexpr index_t size = sizeof(T);
    return {reinterpret_cast<const std::byte*>(a.data),
            a.count,
            a.rows,
            size * a.cols,
            size * a.ld,
            size * a.stride};
  }

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qrtool
