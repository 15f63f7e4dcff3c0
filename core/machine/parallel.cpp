// SPDX-License-Identifier: Apache-2.0
// parallel.cpp: the threads that help loops, and the loops that they may join.
#include "core/machine/parallel.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <system_error>
#include <thread>

namespace qrtool {

/// Helpers wait for work, join the loop that has the fewest of them, and leave it when it has no
/// index left.
class Helpers {
 public:
  /// There is one for the process. It is never destroyed, since its threads run to the end.
  static Helpers& all() {
    static Helpers& helpers = *new Helpers;
    return helpers;
  }

  void run(SharedLoop& loop) {
    open(loop);
    loop.work(0);
    std::unique_lock lock(mutex_);
    std::erase(loops_, &loop);
    left_.wait(lock, [&] { return loop.helpers_ == 0; });
  }

 private:
  void open(SharedLoop& loop) {
    for (int worker = loop.most_helpers_; worker > 0; --worker)
      loop.free_workers_.push_back(worker);
    const std::lock_guard lock(mutex_);
    while (helpers_ < loop.most_helpers_ && add_helper()) {
    }
    loops_.push_back(&loop);
    ++opened_;
    for (int i = 0; i < std::min(sleeping_, loop.most_helpers_); ++i) has_opened_.notify_one();
  }

  /// Returns false if the system gives no more threads. The others then do the work.
  bool add_helper() {
    try {
      std::thread([this] { help(); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    ++helpers_;
    return true;
  }

  /// Returns null if no loop has work for one more thread.
  SharedLoop* find_loop() const {
    SharedLoop* found = nullptr;
    for (SharedLoop* loop : loops_) {
      const bool has_work = loop->next_ < loop->count_ && !loop->free_workers_.empty();
      if (has_work && (found == nullptr || loop->helpers_ < found->helpers_)) found = loop;
    }
    return found;
  }

  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      SharedLoop* const loop = find_loop();
      if (loop == nullptr) {
        wait(lock);
        continue;
      }
      const int worker = loop->free_workers_.back();
      loop->free_workers_.pop_back();
      ++loop->helpers_;
      lock.unlock();
      loop->work(worker);
      lock.lock();
      loop->free_workers_.push_back(worker);
      if (--loop->helpers_ == 0) left_.notify_all();
    }
  }

  /// Waits until the next loop opens. It spins for a short time first: being woken takes longer
  /// than the pause between the chunks of a batch in memory. It does not spin for long, because
  /// others need the core.
  void wait(std::unique_lock<std::mutex>& lock) {
    constexpr auto awake = std::chrono::microseconds(50);
    const std::uint64_t opened = opened_;
    lock.unlock();
    const auto end = std::chrono::steady_clock::now() + awake;
    while (opened_ == opened && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    lock.lock();
    ++sleeping_;
    has_opened_.wait(lock, [&] { return opened_ != opened; });
    --sleeping_;
  }

  std::mutex mutex_;
  std::condition_variable has_opened_, left_;
  std::vector<SharedLoop*> loops_;
  int helpers_ = 0, sleeping_ = 0;
  std::atomic<std::uint64_t> opened_ = 0;  // loops so far
};

void SharedLoop::run() { Helpers::all().run(*this); }

}  // namespace qrtool
