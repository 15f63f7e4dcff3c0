// SPDX-License-Identifier: Apache-2.0
// pipeline.hpp: runs three stages that overlap (read | work | write) on a fixed number of buffers.
//
//   free --read--> filled --work--> done --write--> free
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "app/run/stopwatch.hpp"

namespace qrtool {

/// A queue of at most `capacity` items between two threads.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits for room. Drops the item and returns false once the queue is closed or cancelled.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  /// Waits for an item. Returns nothing once the queue is cancelled, or closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  /// Accepts no more items. Those in the queue can still be taken.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  /// Accepts no more items and drops those in the queue.
  void cancel() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    items_.clear();
    changed_.notify_all();
  }

 private:
  std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
};

/// The time that each stage was busy, without the time that it waited for the others.
struct StageSeconds {
  double read = 0, work = 0, write = 0;
};

/// Passes the buffers through the steps of `stages`, again and again, until read(buffer) returns
/// false and leaves its buffer empty:
///
///     bool read(buffer)   work(buffer)   write(buffer)
///
/// Every step takes the buffers in the same order. work() runs on the calling thread. The first
/// exception of any step stops all of them and is rethrown here.
template <class Buffer, class Stages>
StageSeconds run_pipeline(std::vector<Buffer>& buffers, Stages& stages) {
  BoundedQueue<Buffer*> free(buffers.size()), filled(buffers.size()), done(buffers.size());
  for (Buffer& buffer : buffers) free.push(&buffer);

  std::mutex mutex;
  std::exception_ptr first_error;
  const auto run_stage = [&](BoundedQueue<Buffer*>& from, BoundedQueue<Buffer*>& to, auto step,
                             double& busy_seconds) {
    try {
      while (const std::optional<Buffer*> buffer = from.pop()) {
        const Stopwatch watch;
        const bool more = step(**buffer);
        busy_seconds += watch.seconds();
        if (!more || !to.push(*buffer)) break;
      }
      to.close();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = std::current_exception();
      for (auto* queue : {&free, &filled, &done}) queue->cancel();
    }
  };
  const auto read = [&](Buffer& buffer) { return stages.read(buffer); };
  const auto work = [&](Buffer& buffer) { return stages.work(buffer), true; };
  const auto write = [&](Buffer& buffer) { return stages.write(buffer), true; };

  // If the second thread cannot be started, the first one must not wait for it.
  struct CancelAtExit {
    BoundedQueue<Buffer*>&free, &filled;
    ~CancelAtExit() {
      free.cancel();
      filled.cancel();
    }
  };
  StageSeconds seconds;
  {
    const std::jthread reader([&] { run_stage(free, filled, read, seconds.read); });
    const CancelAtExit cancel{free, filled};
    const std::jthread writer([&] { run_stage(done, free, write, seconds.write); });
    run_stage(filled, done, work, seconds.work);
  }
  if (first_error) std::rethrow_exception(first_error);
  return seconds;
}

}  // namespace qrtool
