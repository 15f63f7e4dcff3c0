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
#include "gpu/pipeline/buffers.hpp"
#include "gpu/pipeline/tuning.hpp"

namespace qrtool {

/// What is known of a run of the kernels for a job.
struct JobRun {
  Event begun, factored, routed, checked;
  std::vector<int> routes;  // of the matrices; empty if the variant has no choice
};

ProgramSource source_of(const GpuVariant& variant, const Problem& problem, const Params& params);

/// The buffer of `buffers` with these numbers.
const Buffer& buffer_of(const DeviceBuffers& buffers, Summed which);

/// Names the kernels that refused matrices need after the variant of `file`, whatever their number;
/// those of reflectors too, unless `leaves_refused`.
struct RefusedKernels {
  std::string_view file;
  Problem problem;
  bool leaves_refused;
  bool operator==(const RefusedKernels&) const = default;
};

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
  /// Builds the kernels for refused matrices if runs of `job` need not read the routes then, or
  /// without `builds` takes them from disk (refused.hpp). A run that refuses one builds them, too.
  void prepare_refused(const GpuVariant& variant, const FactorJob& job, bool builds,
                       bool leaves_refused = false);
  /// Reads the routes; waits for them, or for the compute queue.
  std::vector<int> read_routes(const Buffer& routes, index_t count);
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
  std::size_t most_unread_launches = tuning::most_unread_launches;
  /// An empty queue, by which the host reads routes while kernels run. Null: there is none.
  Queue* beside = nullptr;
  /// These kernels are built, and their launches are so few that the host need not read routes.
  std::vector<RefusedKernels> ready_for_refused;

 private:
  /// check_vector.cl measures in float64.
  bool is_by_vectors(bool by_vectors) const { return by_vectors && info.limits.has_float64; }
  CheckProgram program_of_check(const Problem& problem, bool by_vectors) const;
  /// Enqueues the kernels that measure the errors.
  void enqueue_errors(const DeviceBuffers& buffers, bool by_vectors, Launcher& launch) const;
  void poison(const DeviceBuffers& buffers) const;
  Event routed_;     // when the routes of the job are there, if it is before the last kernel's end
  HostMemory read_;  // page-locked, for read_routes()
  std::size_t read_bytes_ = 0;
};

}  // namespace qrtool
