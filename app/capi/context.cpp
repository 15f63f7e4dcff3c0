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

bool are_equal(const Problem& a, const Problem& b) {
  return a.count == b.count && a.m == b.m && a.n == b.n && a.type == b.type && a.mode == b.mode &&
         a.sign == b.sign && a.arithmetic == b.arithmetic && a.check == b.check &&
         a.pivots == b.pivots && a.wants_condition == b.wants_condition;
}

}  // namespace

const Plan& PlannedBackend::plan_for(const Problem& problem) {
  if (plan && are_equal(plan->problem, problem)) return *plan;
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
  const std::optional<std::uint64_t> memory =
      o.memory_bytes > 0 ? std::optional(o.memory_bytes) : std::nullopt;
  limits = host_limits(memory, has_lost_threads ? 1 : o.threads);
  const std::string wanted = o.device == nullptr ? "auto" : o.device;
  is_automatic_ = wanted == "auto";
  has_looked_ = !is_automatic_ || has_lost_threads;
  if (is_automatic_ || wanted == "cpu") return;
  if (has_lost_threads)
    throw DeviceError(fmt::format(
        "{}: devices do not work in a child of a process that has used qrtool", wanted));
  device_ = choose_devices(list_devices(), wanted).front();
  device_backend(*device_);
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

PlannedBackend& qrtool_context::choose(const Work& work) {
  last.reason = "asked for";
  if (const std::string objection = work.objection_to_devices(); !objection.empty()) {
    if (device_ && !is_automatic_)
      throw UsageError(fmt::format(
          "{}, and such systems are solved on the CPU alone; open a context for it", objection));
    last.reason = "solved on the CPU: " + objection;
    return cpu();
  }
  if (!is_automatic_) return device_ ? device_backend(*device_) : cpu();
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

void qrtool_context::on_backend(const Work& work,
                                const std::function<void(PlannedBackend&)>& body) {
  has_worked = true;
  last = {};
  PlannedBackend* planned = nullptr;
  try {
    planned = &choose(work);
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
    const qrtool_run own{.size = size,
                         .backend = kept(c.last.backend, texts.backend),
                         .device = kept(c.last.device, texts.device),
                         .variant = kept(c.last.variant, texts.variant),
                         .arithmetic = kept(c.last.arithmetic, texts.arithmetic),
                         .reason = kept(c.last.reason, texts.reason),
                         .threads = c.last.threads,
                         .reserved = 0};
    std::memcpy(run, &own, std::min(size, sizeof own));
    return QRTOOL_OK;
  });
}
