// SPDX-License-Identifier: Apache-2.0
// pipeline.cpp: one thread that reads, one that works and one that writes.
#include "app/run/pipeline/pipeline.hpp"

#include <exception>
#include <thread>

namespace qrtool {

StageSeconds run_pipeline(std::size_t count, PipelineSteps& steps) {
  using Queue = BoundedQueue<std::size_t>;
  Queue free(count), filled(count), done(count);
  for (std::size_t buffer = 0; buffer < count; ++buffer) free.push(buffer);

  std::mutex mutex;
  std::exception_ptr first_error;
  const auto has_failed = [&] {
    const std::lock_guard lock(mutex);
    return first_error != nullptr;
  };
  OverlapClock overlap;
  const auto run_stage = [&](Queue& from, Queue& to, bool (PipelineSteps::*step)(std::size_t),
                             double& busy_seconds) {
    try {
      while (const std::optional<std::size_t> buffer = from.pop()) {
        overlap.begin();
        const Stopwatch watch;
        const bool goes_on = (steps.*step)(*buffer);
        busy_seconds += watch.seconds();
        overlap.end();
        if (!goes_on || !to.push(*buffer)) break;
      }
      to.close();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = std::current_exception();
      for (auto* queue : {&free, &filled, &done}) queue->cancel();
    }
  };

  // If the second thread cannot be started, the first one must not wait for it.
  struct CancelAtExit {
    Queue &free, &filled;
    ~CancelAtExit() {
      free.cancel();
      filled.cancel();
    }
  };
  StageSeconds seconds;
  {
    const std::jthread reader([&] { run_stage(free, filled, &PipelineSteps::read, seconds.read); });
    const CancelAtExit cancel{free, filled};
    const std::jthread writer([&] { run_stage(done, free, &PipelineSteps::keep, seconds.write); });
    run_stage(filled, done, &PipelineSteps::work, seconds.work);
    if (steps.has_after_work() && !has_failed()) {
      overlap.begin();
      const Stopwatch watch;
      steps.after_work();
      seconds.free = watch.seconds();
      overlap.end();
    }
  }
  if (first_error) std::rethrow_exception(first_error);
  seconds.overlap = overlap.seconds();
  return seconds;
}

}  // namespace qrtool
