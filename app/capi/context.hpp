// SPDX-License-Identifier: Apache-2.0
// context.hpp: what qrtool_context is: the backends, kept from call to call, and who of them takes
// a call.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "app/capi/calls.hpp"
#include "app/capi/device_calls.hpp"
#include "app/engine/automatic.hpp"
#include "core/factor/checked_backend.hpp"
#include "gpu/host/device.hpp"

namespace qrtool::capi {

/// A backend with all that surrounds it, and the plan of its last call.
struct PlannedBackend {
  explicit PlannedBackend(std::shared_ptr<Backend> its_backend)
      : backend(std::move(its_backend)), device(backend->device()) {}

  /// Returns make_plan() for a problem, or the last plan if the problem is the same. A plan depends
  /// on nothing that changes while a context is open.
  const Plan& plan_for(const Problem& problem);

  std::shared_ptr<Backend> backend;
  std::string device;
  std::optional<Plan> plan;
  std::optional<CheckedBackend> checked;  // with workspaces for the problem of the plan
};

/// How the last call was done.
struct LastRun {
  std::string backend, device, variant, arithmetic, reason;
  int threads = 0;
};

}  // namespace qrtool::capi

struct qrtool_context {
  explicit qrtool_context(const qrtool_context_options& options);

  /// Throws CodeError in a child of the process that opened the context.
  void require_own_process() const;
  /// Asks the caller whether a long call is to go on. Throws CodeError if not.
  void require_going_on() const;

  /// Says that threads of this process will have worked.
  static void note_work();

  /// Calls body(planned) with the backend that does the work, one call at a time, and shows its
  /// texts. If a device that was chosen, not named, fails, the CPU does everything again.
  /// `on_host`: why arrays of a device have come to the host; the CPU then does what no device
  /// does.
  void on_backend(const qrtool::Work& work,
                  const std::function<void(qrtool::capi::PlannedBackend&)>& body,
                  const std::string& on_host = {});

  /// Whether the arrays of a call are in the memory of the device. `of_host`: what it writes for
  /// the host alone. Errors: UsageError if they may not be where they are, or if `stream` or
  /// no_wait ask for what is not possible.
  bool are_on_device(std::span<const qrtool::capi::CallArray> arrays,
                     std::span<const qrtool::capi::CallArray> of_host, void* stream,
                     bool no_wait = false) const;
  /// Errors: UsageError if the context has no device arrays.
  qrtool::capi::DeviceCalls& device_calls() const;

  /// Keeps, and returns, what qrtool_last_run() says.
  void show(const qrtool::capi::LastRun& run);
  /// The same for a call on device arrays.
  void show_on_device(std::string_view variant, std::string arithmetic);
  qrtool::capi::LastRun shown();
  /// Frees what is kept from call to call.
  void release();

  std::mutex mutex;  // of calls on host memory
  qrtool::Limits limits;
  qrtool::capi::LastRun last;  // of such a call

 private:
  qrtool::capi::PlannedBackend& cpu();
  qrtool::capi::PlannedBackend& device_backend(const qrtool::DeviceInfo& device);
  qrtool::capi::PlannedBackend& choose(const qrtool::Work& work, bool may_leave_device);

  pid_t process_;
  int (*keep_going_)(void*);
  void* user_;
  std::optional<qrtool::DeviceInfo> device_;  // that is named, or the GPU that may be taken
  bool is_automatic_, has_looked_ = false, has_failed_ = false;
  std::unique_ptr<qrtool::capi::PlannedBackend> cpu_, on_device_;
  std::unique_ptr<qrtool::capi::DeviceCalls> device_calls_;
  std::mutex shown_mutex_;
  qrtool::capi::LastRun shown_;
};

namespace qrtool::capi {

/// Returns how many of `threads` threads can have `bytes` of memory each. Errors: LimitError if
/// none can; `doing` says what needs them.
int threads_in_memory(const Limits& limits, int threads, std::size_t bytes,
                      const std::string& doing);

/// A call on a context, in the process that opened it.
template <class Body>
int on_context(qrtool_context* context, Body body) noexcept {
  return guarded([&] {
    if (context == nullptr) throw UsageError("context is NULL");
    context->require_own_process();
    return body(*context);
  });
}

}  // namespace qrtool::capi
