// SPDX-License-Identifier: Apache-2.0
// pipeline.hpp: runs three stages that overlap (read | work | write) on a fixed number of buffers.
//
//   free --read--> filled --work--> done --write--> free
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "app/process/stopwatch.hpp"

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

template <class Stages, class Buffer>
concept HasAfterWork = requires(Stages& stages, std::vector<Buffer>& buffers) {
  stages.after_work(buffers);
};

/// The steps of a pipeline for one kind of buffers, by their numbers. Private to run_pipeline: the
/// pipeline is compiled once, and not for every kind.
class PipelineSteps {
 public:
  virtual ~PipelineSteps() = default;
  virtual bool read(std::size_t buffer) = 0;
  virtual void work(std::size_t buffer) = 0;
  virtual void write(std::size_t buffer) = 0;
  virtual bool has_after_work() const = 0;
  virtual void after_work() = 0;
};

/// run_pipeline() for buffers 0 .. count - 1.
StageSeconds run_numbered_pipeline(std::size_t count, PipelineSteps& steps);

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
  class Steps final : public PipelineSteps {
   public:
    Steps(std::vector<Buffer>& all, Stages& steps) : buffers_(all), stages_(steps) {}

   private:
    bool read(std::size_t buffer) override { return stages_.read(buffers_[buffer]); }
    void work(std::size_t buffer) override { stages_.work(buffers_[buffer]); }
    void write(std::size_t buffer) override { stages_.write(buffers_[buffer]); }
    bool has_after_work() const override { return HasAfterWork<Stages, Buffer>; }
    void after_work() override {
      if constexpr (HasAfterWork<Stages, Buffer>) stages_.after_work(buffers_);
    }
    std::vector<Buffer>& buffers_;
    Stages& stages_;
  };
  Steps steps(buffers, stages);
  return run_numbered_pipeline(buffers.size(), steps);
}

}  // namespace qrtool
