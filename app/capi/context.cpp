// SPDX-License-Identifier: Apache-2.0
// context.cpp: opens contexts, and chooses the backend of each call.
#include "app/capi/context.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "app/engine/opencl.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/host.hpp"

namespace qrtool::capi {
namespace {

/// Whether threads, or drivers, of this library may have run in this process, and whether they were
/// lost because this process is a child of one in which they had run. Threads of the parent do not
/// exist in a child, and waiting for them would never end, so a child works on one thread.
std::atomic<bool> has_worked = false, has_lost_threads = false;

void note_child() {
  if (has_worked) has_lost_threads = true;
}

void expect_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, note_child);
  if (registered != 0) throw LimitError("fork handlers cannot be registered");
}

}  // namespace

const Plan& PlannedBackend::plan_for(const Problem& problem) {
  if (plan && plan->problem == problem) return *plan;
  plan.reset();
  checked.emplace(*backend);
  Limits limits = backend->limits();
  // The arrays belong to the caller, so the memory of one matrix and its factors is not counted.
  limits.host_bytes += problem.input_bytes() + problem.output_bytes();
  plan = make_plan(problem, backend->variants(), limits);
  if (plan->by_rows())
    throw LimitError(
        fmt::format("one {} x {} matrix does not fit the memory", problem.m, problem.n));
  return *plan;
}

int threads_in_memory(const Limits& limits, int threads, std::size_t bytes,
                      const std::string& doing) {
  const std::size_t fitting = limits.host_bytes / std::max<std::size_t>(bytes, 1);
  if (fitting == 0)
    throw LimitError(
        fmt::format("{} needs {} bytes; the limit is {}", doing, bytes, limits.host_bytes));
  return static_cast<int>(std::min<std::size_t>(fitting, static_cast<std::size_t>(threads)));
}

}  // namespace qrtool::capi

using namespace qrtool;
using namespace qrtool::capi;

qrtool_context::qrtool_context(const qrtool_context_options& o)
    : process_(getpid()), keep_going_(o.keep_going), user_(o.user) {
  if (o.threads < 0 || o.threads > 4096)
    throw UsageError(fmt::format("threads is {}; it may be 0 to 4096", o.threads));
  if (o.reserved != 0) throw UsageError("qrtool_context_options: reserved is not 0");
  if (o.memory_bytes > std::uint64_t{INT64_MAX})
    throw UsageError(fmt::format("memory_bytes is {}; a negative number of bytes?",
                                 static_cast<std::int64_t>(o.memory_bytes)));
  if ((o.allocate == nullptr) != (o.deallocate == nullptr))
    throw UsageError("allocate and deallocate are given both, or none of them");
  const std::optional<std::uint64_t> memory =
      o.memory_bytes > 0 ? std::optional(o.memory_bytes) : std::nullopt;
  limits = host_limits(memory, has_lost_threads ? 1 : o.threads);
  const std::string wanted = o.device == nullptr ? "auto" : o.device;
  is_automatic_ = wanted == "auto";
  has_looked_ = !is_automatic_ || has_lost_threads;
  const StreamAllocator allocator{o.allocate, o.deallocate, o.user};
  const auto require_no_allocator = [&](bool is_right) {
    if (!is_right && allocator.allocate != nullptr)
      throw UsageError("allocate is for a device that is named cuda:N");
  };
  require_no_allocator(!is_automatic_ && wanted != "cpu");
  if (is_automatic_ || wanted == "cpu") return;
  if (has_lost_threads)
    throw DeviceError(fmt::format(
        "{}: devices do not work in a child of a process that has used qrtool", wanted));
  device_ = choose_devices(list_devices(), wanted).front();
  const std::shared_ptr<Backend> backend = device_backend(*device_).backend;
  const CallerArrays* const arrays = opencl_caller_arrays(*backend);
  require_no_allocator(arrays != nullptr);
  if (arrays != nullptr)
    device_calls_ =
        std::make_unique<DeviceCalls>(backend, *arrays, device_->cuda_ordinal, allocator);
}

void qrtool_context::require_own_process() const {
  if (getpid() != process_)
    throw CodeError{QRTOOL_FORKED,
                    "the context was opened before fork(); open one in this process"};
}

void qrtool_context::require_going_on() const {
  if (keep_going_ != nullptr && keep_going_(user_) == 0)
    throw CodeError{QRTOOL_STOPPED, "stopped by keep_going"};
}

PlannedBackend& qrtool_context::cpu() {
  if (!cpu_) cpu_ = std::make_unique<PlannedBackend>(std::make_unique<CpuBackend>(limits));
  return *cpu_;
}

PlannedBackend& qrtool_context::device_backend(const DeviceInfo& device) {
  has_worked = true;
  if (!on_device_)
    on_device_ = std::make_unique<PlannedBackend>(make_opencl_backend(device, limits));
  return *on_device_;
}

PlannedBackend& qrtool_context::choose(const Work& work, bool may_leave_device) {
  last.reason = "asked for";
  if (const std::string objection = work.objection_to_devices(); !objection.empty()) {
    if (device_ && !is_automatic_ && !may_leave_device)
      throw UsageError(fmt::format(
          "{}, and such systems are solved on the CPU alone; open a context for it", objection));
    last.reason = "solved on the CPU: " + objection;
    return cpu();
  }
  if (!is_automatic_) {
    if (!device_) return cpu();
    const Backend& device = *device_backend(*device_).backend;
    const bool is_taken =
        !may_leave_device || least_costly(work.problem, device.variants(), device.limits());
    return is_taken ? device_backend(*device_) : cpu();
  }
  Timings timings;
  if (!has_looked_ && is_worth_a_device(work, limits, timings)) {
    has_looked_ = has_worked = true;
    const std::vector<DeviceInfo> devices = list_devices();
    const auto gpu = std::ranges::find_if(devices, [](const auto& d) { return !d.limits.is_cpu; });
    if (gpu != devices.end()) device_ = *gpu;
  }
  if (has_failed_) {
    last.reason = "the device failed before";
    return cpu();
  }
  for (const DeviceTimes& times : device_times()) timings.add(times);
  const std::span<const DeviceInfo> devices =
      device_ ? std::span(&*device_, 1) : std::span<const DeviceInfo>{};
  AutomaticChoice choice =
      choose_automatically(work, limits, devices, timings, /*is_started=*/on_device_ != nullptr);
  last.reason = std::move(choice.reason);
  return choice.device != nullptr ? device_backend(*choice.device) : cpu();
}

void qrtool_context::note_work() { has_worked = true; }

void qrtool_context::on_backend(const Work& work, const std::function<void(PlannedBackend&)>& body,
                                const std::string& on_host) {
  const std::lock_guard lock(mutex);
  has_worked = true;
  last = {};
  PlannedBackend* planned = nullptr;
  try {
    planned = &choose(work, !on_host.empty());
    body(*planned);
  } catch (const Error& error) {
    const bool is_of_device = error.code() == ExitCode::device || error.code() == ExitCode::limit;
    const bool had_device = planned == nullptr || planned == on_device_.get();
    if (!is_automatic_ || !is_of_device || !had_device) throw;
    last.reason = fmt::format("{}; the CPU did it", error.what());
    has_failed_ = true;
    planned = &cpu();
    body(*planned);
  }
  last.backend = planned->backend->name();
  last.device = planned->device;
  if (!on_host.empty())
    last.reason = fmt::format("copied to the host and back: {}; {}", on_host, last.reason);
  show(last);
}

bool qrtool_context::are_on_device(std::span<const CallArray> arrays,
                                   std::span<const CallArray> of_host, void* stream,
                                   bool no_wait) const {
  if (device_calls_ && device_calls_->are_there(arrays)) {
    device_calls_->require_on_host(of_host);
    device_calls_->require_fit(stream);
    return true;
  }
  if (stream == nullptr && !no_wait) return false;
  const auto counts = [](const CallArray& array) { return array.has_entries; };
  const auto found = std::ranges::find_if(arrays, counts);
  if (found == arrays.end()) return false;
  throw UsageError(fmt::format("{} is for arrays in the memory of a device cuda:N, and {} is none",
                               stream != nullptr ? "stream" : "no_wait", found->name));
}

DeviceCalls& qrtool_context::device_calls() const {
  if (!device_calls_) throw UsageError("the context is not that of a device cuda:N");
  return *device_calls_;
}

void qrtool_context::show(const LastRun& run) {
  const std::lock_guard lock(shown_mutex_);
  shown_ = run;
}

void qrtool_context::show_on_device(std::string_view variant, std::string arithmetic) {
  has_worked = true;
  show({.backend = on_device_->backend->name(),
        .device = on_device_->device,
        .variant = std::string(variant),
        .arithmetic = std::move(arithmetic),
        .reason = "the arrays are there",
        .threads = 1});
}

LastRun qrtool_context::shown() {
  const std::lock_guard lock(shown_mutex_);
  return shown_;
}

void qrtool_context::release() {
  const std::lock_guard lock(mutex);
  for (const auto& planned : {cpu_.get(), on_device_.get()}) {
    if (planned == nullptr) continue;
    planned->checked.reset();
    planned->plan.reset();
    planned->backend->free_workspace();
  }
  if (device_calls_) device_calls_->release();
}

int qrtool_open(const qrtool_context_options* options, qrtool_context** context) {
  return guarded([&] {
    if (context == nullptr) throw UsageError("qrtool_open: context is NULL");
    *context = nullptr;
    expect_forks();
    *context = new qrtool_context(taken(options, "qrtool_context_options"));
    return QRTOOL_OK;
  });
}

void qrtool_close(qrtool_context* context) {
  // A context that the parent opened holds threads and a driver that this process does not have.
  guarded([&] {
    if (context != nullptr) context->require_own_process();
    delete context;
    return QRTOOL_OK;
  });
}

namespace {

/// The texts that a thread was given last. The texts of the context change with its next call,
/// which another thread may make at any time.
struct RunTexts {
  char backend[16], device[256], variant[128], arithmetic[128], reason[1024];
};
thread_local RunTexts texts;

const char* kept(std::string_view text, std::span<char> in) {
  copy_text(text, in);
  return in.data();
}

}  // namespace

int qrtool_last_run(qrtool_context* context, qrtool_run* run) {
  return on_context(context, [&](qrtool_context& c) {
    if (run == nullptr) throw UsageError("qrtool_last_run: run is NULL");
    const std::size_t size = run->size;
    taken(run, "qrtool_run");  // checks its size
    const LastRun last = c.shown();
    const qrtool_run own{.size = size,
                         .backend = kept(last.backend, texts.backend),
                         .device = kept(last.device, texts.device),
                         .variant = kept(last.variant, texts.variant),
                         .arithmetic = kept(last.arithmetic, texts.arithmetic),
                         .reason = kept(last.reason, texts.reason),
                         .threads = last.threads,
                         .reserved = 0};
    std::memcpy(run, &own, std::min(size, sizeof own));
    return QRTOOL_OK;
  });
}
