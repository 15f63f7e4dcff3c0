// SPDX-License-Identifier: Apache-2.0
// pipeline.hpp: runs three stages that overlap (read | work | keep) on a fixed number of buffers.
//
//   free --read--> filled --work--> done --keep--> free
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "app/process/stopwatch.hpp"
#include "core/batch.hpp"

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

  /// Waits for an item. Returns nothing if the queue is cancelled, or closed and empty.
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

/// One buffer of a run: `count` matrices from number `first` on, or as many rows of one matrix,
/// with their factors and the results of measuring them. A part that a run does not need stays
/// empty. A buffer may be larger than its content: the last chunk of a run is often shorter.
template <class T, class Findings>
struct Chunk {
  index_t first = 0, count = 0;
  Batch<T> a, q, r, v, tau;
  Batch<double> p;  // the numbers of P
  Findings found;

  /// Returns the matrices in a part.
  template <class U>
  BatchView<U> matrices(const Batch<U>& part) const {
    return part.view().slice(0, count);
  }
  /// Returns the rows in a part.
  MatrixView<T> rows(const Batch<T>& part) const { return part.view()[0].row_block(0, count); }
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
  /// Returns StageSeconds::overlap.
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

/// The steps of a pipeline for one kind of buffers, by their numbers. Private to run_stages: the
/// pipeline is compiled once, and not for every kind. Each step returns whether the buffer goes on.
class PipelineSteps {
 public:
  virtual ~PipelineSteps() = default;
  virtual bool read(std::size_t buffer) = 0;
  virtual bool work(std::size_t buffer) = 0;
  virtual bool keep(std::size_t buffer) = 0;
  virtual bool has_after_work() const = 0;
  virtual void after_work() = 0;
};

/// Calls run_stages() for buffers 0 .. count - 1.
StageSeconds run_pipeline(std::size_t count, PipelineSteps& steps);

/// Passes chunks 0 .. count - 1 through the steps of a run, which are
///
///     begin(chunk, number)   says which matrices or rows the chunk holds
///     read(chunk)            fills in A
///     work(chunk)            computes
///     keep(chunk)            takes the result
///     after_work(buffers)    where they have it: frees what keep() does not need
///
/// The steps overlap on a fixed number of buffers; each takes the chunks in ascending order. work()
/// runs on the calling thread, and so does after_work(), which is called once, when nothing is left
/// but to keep. The first exception of any step stops all of them and is rethrown here.
template <class Chunk, class Steps>
StageSeconds run_stages(index_t count, std::vector<Chunk>& buffers, Steps& steps) {
  constexpr bool frees = requires { steps.after_work(buffers); };
  struct Numbered final : PipelineSteps {
    Numbered(index_t chunks, std::vector<Chunk>& all, Steps& of_run)
        : count(chunks), buffers(all), steps(of_run) {}

    bool read(std::size_t buffer) override {
      if (next == count) return false;
      steps.begin(buffers[buffer], next++);
      steps.read(buffers[buffer]);
      return true;
    }
    bool work(std::size_t buffer) override { return steps.work(buffers[buffer]), true; }
    bool keep(std::size_t buffer) override { return steps.keep(buffers[buffer]), true; }
    bool has_after_work() const override { return frees; }
    void after_work() override {
      if constexpr (frees) steps.after_work(buffers);
    }
    index_t count, next = 0;
    std::vector<Chunk>& buffers;
    Steps& steps;
  } numbered(count, buffers, steps);
  return run_pipeline(buffers.size(), numbered);
}

}  // namespace qrtool
