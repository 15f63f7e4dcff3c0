// SPDX-License-Identifier: Apache-2.0
// opencl_backend.hpp: QR on an OpenCL device.
//
// A chunk is cut into sub-chunks that fit the device; upload, compute and download of neighbours
// overlap. The device measures the errors of every matrix beside its factors; the host re-measures
// the first, the last and one in a thousand of each sub-chunk. Where their verdicts differ the
// host's stands, and the host measures the rest of that sub-chunk too.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

struct OpenclOptions {
  /// Memory, threads, ranks and scratch of the user; the device's fields are taken from the device.
  Limits host;
  /// Pretends that CL_DEVICE_MAX_MEM_ALLOC_SIZE is this; 0: as it is.
  std::size_t pretend_max_allocation = 0;
  /// Leaves out what only some devices have: the kernels' bodies for any device run. For tests on a
  /// GPU (QRTOOL_TEST_PORTABLE).
  bool portable = false;
};

struct Engine;
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

  /// Pinned memory, which the device copies from and to at full speed; ordinary memory where the
  /// driver has none left.
  HostMemory allocate(std::size_t bytes) override;

  ChunkSeconds factor(const Plan& plan, BatchView<const float> a, const Factors<float>& out,
                      std::span<MatrixReport> report) override;
  ChunkSeconds factor(const Plan& plan, BatchView<const double> a, const Factors<double>& out,
                      std::span<MatrixReport> report) override;

 private:
  friend class ResidentRun;
  std::unique_ptr<Engine> engine_;
};

/// Factors data that stays on the device, for measuring: uploaded once, run as often as wanted.
/// All matrices must fit the device at once.
class ResidentRun {
 public:
  struct Seconds {
    double factor = 0, check = 0;  // by the device's clock
  };

  /// Uploads. `plan` must outlive the run. Errors: DeviceError, LimitError.
  ResidentRun(OpenclBackend& backend, const Plan& plan, BatchView<const float> a);
  ResidentRun(OpenclBackend& backend, const Plan& plan, BatchView<const double> a);
  ~ResidentRun();

  /// Factors and checks every matrix once; returns when the device has finished.
  Seconds run();
  /// Factors without a check and copies the first to.size() bytes of R: one wait for both.
  void run_to_r(std::span<std::byte> to);

  /// What the last run's check measured, by matrix.
  std::vector<MatrixReport> report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qrtool
