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

/// The time that each stage was busy, without the time that it waited for the others. All together,
/// less `overlap`, are the wall time.
struct StageSeconds {
  double read = 0, work = 0, write = 0;
  double free = 0;     // memory that was given back beside the last writes
  double overlap = 0;  // the time when two were busy, and twice the time when three were

  StageSeconds& operator+=(const StageSeconds& other) {
    read += other.read;
    work += other.work;
    write += other.write;
    free += other.free;
    overlap += other.overlap;
    return *this;
  }
};

/// Measures for how long several threads are busy at a time.
class OverlapClock {
 public:
  void begin() { change(1); }
  void end() { change(-1); }
  /// As StageSeconds::overlap.
  double seconds() const { return seconds_; }

 private:
  void change(int by) {
    const std::lock_guard lock(mutex_);
    const double now = watch_.seconds();
    if (busy_ > 1) seconds_ += (busy_ - 1) * (now - last_);
    last_ = now;
    busy_ += by;
  }

  std::mutex mutex_;
  Stopwatch watch_;
  double last_ = 0, seconds_ = 0;
  int busy_ = 0;
};

/// Passes the buffers through the steps of `stages`, again and again, until read(buffer) returns
/// false and leaves its buffer empty:
///
///     bool read(buffer)   work(buffer)   write(buffer)
///
/// Every step takes the buffers in the same order. work() runs on the calling thread, and so does
/// after_work(buffers), where `stages` has it: it is called once, when nothing is left but to
/// write. The first exception of any step stops all of them and is rethrown here.
template <class Buffer, class Stages>
StageSeconds run_pipeline(std::vector<Buffer>& buffers, Stages& stages) {
  BoundedQueue<Buffer*> free(buffers.size()), filled(buffers.size()), done(buffers.size());
  for (Buffer& buffer : buffers) free.push(&buffer);

  std::mutex mutex;
  std::exception_ptr first_error;
  const auto has_failed = [&] {
    const std::lock_guard lock(mutex);
    return first_error != nullptr;
  };
  OverlapClock overlap;
  const auto timed = [&](double& busy_seconds, auto step) {
    overlap.begin();
    const Stopwatch watch;
    step();
    busy_seconds += watch.seconds();
    overlap.end();
  };
  const auto run_stage = [&](BoundedQueue<Buffer*>& from, BoundedQueue<Buffer*>& to, auto step,
                             double& busy_seconds) {
    try {
      while (const std::optional<Buffer*> buffer = from.pop()) {
        bool more = false;
        timed(busy_seconds, [&] { more = step(**buffer); });
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
    if constexpr (requires { stages.after_work(buffers); })
      if (!has_failed()) timed(seconds.free, [&] { stages.after_work(buffers); });
  }
  if (first_error) std::rethrow_exception(first_error);
  seconds.overlap = overlap.seconds();
  return seconds;
}

}  // namespace qrtool
