// SPDX-License-Identifier: Apache-2.0
// parallel.hpp: runs a loop on several threads. All loops of the process share their helpers, so
// that reading, computing and writing together keep to the threads that one of them may have.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// A loop that helpers may join while it runs. Private to parallel_for.
class SharedLoop {
 public:
  SharedLoop(index_t count, int threads) : count_(count), most_helpers_(threads - 1) {}
  virtual ~SharedLoop() = default;

 protected:
  /// Runs the loop on this thread, as worker 0, and on helpers. Returns when all have ended.
  void run();
  /// Returns the next index. It is valid if it is below count().
  index_t take() { return next_.fetch_add(1); }
  index_t count() const { return count_; }
  void stop() { next_ = count_; }

 private:
  friend class Helpers;
  virtual void work(int worker) = 0;

  std::atomic<index_t> next_ = 0;
  index_t count_;
  int most_helpers_, helpers_ = 0;
  std::vector<int> free_workers_;  // numbers from 1 on that no helper has
};

/// Calls body(i, worker) once for every i < count. No two threads use the same worker number (<
/// threads) at one time. The calling thread takes part, and so do idle helpers, of which all loops
/// together have at most the largest `threads` so far less one. The indices are begun in ascending
/// order. The first exception stops the loop and is thrown again.
template <class Body>
void parallel_for(index_t count, int threads, Body body) {
  class Loop final : public SharedLoop {
   public:
    Loop(index_t loop_count, int loop_threads, Body& loop_body)
        : SharedLoop(loop_count, loop_threads), body_(loop_body) {}
    void run_all() {
      run();
      if (first_error_) std::rethrow_exception(first_error_);
    }

   private:
    void work(int worker) override {
      try {
        for (index_t i = take(); i < count(); i = take()) body_(i, worker);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!first_error_) first_error_ = std::current_exception();
        stop();
      }
    }
    Body& body_;
    std::mutex mutex_;
    std::exception_ptr first_error_;
  };
  if (threads <= 1 || count <= 1) {
    for (index_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  Loop(count, static_cast<int>(std::min<index_t>(threads, count)), body).run_all();
}

}  // namespace qrtool
