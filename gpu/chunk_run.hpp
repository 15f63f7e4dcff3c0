// SPDX-License-Identifier: Apache-2.0
// chunk_run.hpp: one call of OpenclBackend::factor: sub-chunks through upload, compute and
// download, overlapped.
//
//   upload    | 0 | 1 | 2 | 3 |              in-order queues; events order them:
//   compute       | 0 | 1 | 2 | 3 |          upload -> factor, check -> download
//   download          | 0 | 1 | 2 | 3 |
//   host                  | 0 | 1 | 2 | 3 |  verdicts, a sample measured anew
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/backend.hpp"
#include "gpu/buffers.hpp"
#include "gpu/device.hpp"
#include "gpu/host_check.hpp"
#include "gpu/session.hpp"

namespace qrtool {

/// What a backend keeps from call to call.
struct Engine {
  Engine(const DeviceInfo& device_info, Session& device_session);

  /// Factors and checks the matrices of `buffers` in the compute queue.
  /// after_factor, after_check: events at the end of each stage.
  void enqueue(const GpuVariant& variant, const DeviceBuffers& buffers, cl::Event& after_factor,
               cl::Event& after_check);
  /// The matrices that job.work[0] flags, by `variant`.
  void enqueue_again(const GpuVariant& variant, const FactorJob& job);
  void enqueue_one(const GpuVariant& variant, const FactorJob& job, index_t b, Launcher& launch);
  /// Waits for the compute queue.
  std::vector<cl_int> read_flags(const FactorJob& job);
  bool has_flag(const FactorJob& job);
  /// Waits for all queues; errors are not of interest any more.
  void drain() noexcept;

  DeviceInfo info;
  Session& session;
  cl::CommandQueue upload, compute, download;
  KernelCache kernels;
  BufferPool pool;
};

/// From the end of `first` to the end of `last`, by the device's clock.
double seconds_between(const cl::Event& first, const cl::Event& last);
/// From the start of the first to the end of the last.
double seconds_of(const std::vector<cl::Event>& events);

/// Whether smaller sub-chunks may help.
bool is_memory_short(const cl::Error& error);
/// A failed call as the user should see it.
[[noreturn]] void throw_device_error(const cl::Error& error, const DeviceInfo& info,
                                     std::string_view where);

template <class T>
class ChunkRun {
 public:
  ChunkRun(Engine& engine, const Plan& plan, BatchView<const T> a, const Factors<T>& out,
           std::span<MatrixReport> report);

  /// Errors: DeviceError, LimitError.
  ChunkSeconds run();

 private:
  /// A sub-chunk on its way.
  struct Flight {
    index_t first = 0, count = 0;
    std::unique_ptr<DeviceBuffers> buffers;
    std::vector<cl::Event> uploads, downloads;
    cl::Event begun, factored, checked;
    std::vector<DeviceErrors> errors;
  };

  void run_from_first_open(SubChunks cut, std::vector<Flight>& flights);
  void begin(Flight& flight, index_t first, index_t count, int set);
  void launch(Flight& flight);
  void collect(Flight& flight);
  void judge_all(const Flight& flight);

  Engine& engine_;
  const Plan& plan_;
  const GpuVariant& variant_;
  MatrixBytes bytes_;
  BatchView<const T> a_;
  const Factors<T>& out_;
  std::span<MatrixReport> report_;
  HostCheck<T> host_check_;
  ChunkSeconds seconds_;
  index_t open_ = 0;  // first matrix that has not come back
};

}  // namespace qrtool
