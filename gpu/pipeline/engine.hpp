// SPDX-License-Identifier: Apache-2.0
// engine.hpp: the queues and buffers of a device, and the steps of a sub-chunk there: the kernels
// of a variant, reflectors for the matrices that the variant has flagged, and the check.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/check/device_sums.hpp"
#include "gpu/host/device.hpp"
#include "gpu/host/launcher.hpp"
#include "gpu/host/ring.hpp"
#include "gpu/host/session.hpp"
#include "gpu/model/further.hpp"
#include "gpu/pipeline/buffers.hpp"

namespace qrtool {

/// What is known of a run of the kernels for a job.
struct JobRun {
  Event begun, factored, routed, checked;
  std::vector<int> routes;  // of the matrices; empty if the variant has no choice
};

/// The buffer of `buffers` with these numbers.
const Buffer& buffer_of(const DeviceBuffers& buffers, Summed which);

/// The state that a backend keeps between calls.
struct FactorEngine {
  /// `from`: where its memory comes from; null: from the session's context.
  FactorEngine(const DeviceInfo& device_info, Session& device_session,
               const DeviceMemory* from = nullptr);

  /// Of the compute queue. `routes`: as of Launcher.
  Launcher launcher(const ProgramSource& source, const Buffer& routes = {}) {
    return {kernels, *compute, session.programs, source, routes};
  }
  /// Builds the kernels that the steps below need for these buffers, but not those for flagged
  /// matrices, nor without `is_copied` those for checksums. Without it they are built at their
  /// first launch, one after another.
  void prepare(const GpuVariant& variant, const DeviceBuffers& buffers, bool is_checked,
               bool is_copied = true);
  /// Adds the kernels that factor() launches, but not those for flagged matrices.
  void add_wanted(const GpuVariant& variant, const FactorJob& job,
                  std::vector<WantedKernels>& wanted) const;
  /// Returns the kernels that check() launches.
  WantedKernels wanted_by_check(const DeviceBuffers& buffers, bool by_vectors) const;
  /// Enqueues the steps of `variant` for `job` in the compute queue. Refused matrices that further
  /// passes cannot factor are left as they are where `leaves_refused` says so.
  void factor(const GpuVariant& variant, const FactorJob& job, bool leaves_refused = false);
  /// Enqueues the measurement of the errors, after setting them to NaN. by_vectors: as
  /// GpuVariant::checks_by_vectors says.
  void check(const DeviceBuffers& buffers, bool by_vectors);
  /// Enqueues all kernels between the upload of A and the download of its factors: the checksums
  /// of A, the variant, the check where `is_checked` says so, the checksums of the results.
  /// `run.routes` is filled in after run.routed.
  void run(const GpuVariant& variant, const DeviceBuffers& buffers, bool is_checked, JobRun& run);
  /// Enqueues the checksums of some buffers of `job` in the compute queue.
  void sum(const DeviceBuffers& buffers, std::span<const Summed> which);
  /// Calls body(), which ends with a wait. Errors: DeviceError, and LimitError with the words
  /// `no_room`, unless these are empty, where memory is short; nothing is in a queue or in the pool
  /// then.
  template <class Body>
  void guarded(std::string_view where, const std::string& no_room, Body body) {
    const DriverScope driver;
    try {
      body();
    } catch (const DeviceFailure& failure) {
      drain();
      pool.clear();
      if (!failure.is_memory_short() || no_room.empty()) throw_device_error(failure, info, where);
      throw LimitError(no_room, "--backend cpu works in host memory");
    }
  }
  /// Waits for all queues and ignores errors.
  void drain() noexcept;
  /// Page-locked memory, or ordinary memory where the driver has none left.
  HostMemory allocate(std::size_t bytes);

  DeviceInfo info;
  Session& session;
  const DeviceMemory& memory;
  std::unique_ptr<Queue> upload, compute, download;
  KernelCache kernels;
  BufferPool pool;
  CopyRing ring;                          // for arrays that allocate() has not given
  std::atomic<bool> is_pageable = false;  // whether allocate() had to give ordinary memory

 private:
  CheckProgram program_of_check(const Problem& problem, bool by_vectors) const;
  /// Enqueues the kernels that measure the errors.
  void enqueue_errors(const DeviceBuffers& buffers, bool by_vectors, Launcher& launch) const;
  /// Factors the matrices whose route is `reflectors` by further passes, which leave this route to
  /// those that they cannot factor. `known` has the routes that the host has read, and afterwards
  /// the new ones.
  void enqueue_further(const FurtherRoute& route, const GpuVariant& first, const FactorJob& job,
                       const Buffer& routes, std::vector<int>& known);
  /// Factors refused matrices whose columns are out of range once more, with scaled columns.
  /// `known` becomes the routes, where they were read.
  void enqueue_scaled(const GpuVariant& first, const FactorJob& job, std::vector<int>& known);
  /// Factors the matrices whose route in job.work[0] is `reflectors`: by further passes where these
  /// take the problem, and then, unless `leaves_refused`, with the variant first.again.
  void enqueue_again(const GpuVariant& first, const FactorJob& job, bool leaves_refused);
  /// variant.enqueue_rest, after further passes where these take what it is for.
  void enqueue_rest(const GpuVariant& variant, const FactorJob& job, Launcher& launch);
  /// A job for one matrix, with A and factors of its own.
  FactorJob own_job(const FactorJob& job, const MatrixBytes& bytes) const;
  /// Factors matrix b of a job in the buffers of `one`. The next matrix may take the same ones,
  /// since the queue is in order.
  void enqueue_one(const MatrixBytes& bytes, const FactorJob& job, index_t b, const FactorJob& one,
                   Launcher& launch);
  void poison(const DeviceBuffers& buffers) const;
  /// Reads the routes; waits for the compute queue.
  std::vector<int> read_routes(const Buffer& routes, index_t count);

  HostMemory read_;  // page-locked, for read_routes()
  std::size_t read_bytes_ = 0;
};

}  // namespace qrtool
