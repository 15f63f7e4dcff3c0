// SPDX-License-Identifier: Apache-2.0
// parallel_test.cpp: loops on several threads, and the helpers that they share.
#include "core/machine/parallel.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace qrtool::parallel_test {
namespace {

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

TEST(ParallelFor, CallsTheBodyOncePerIndex) {
  for (const int threads : {1, 2, 5}) {
    for (const index_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      parallel_for(count, threads, [&](index_t i, int) { ++calls[static_cast<std::size_t>(i)]; });
      for (const auto& times : calls) EXPECT_EQ(times, 1);
    }
  }
}

TEST(ParallelFor, NoTwoThreadsAreTheSameWorker) {
  constexpr int threads = 4;
  std::array<std::atomic<int>, threads> busy{};
  std::atomic<bool> is_shared = false;
  parallel_for(400, threads, [&](index_t, int worker) {
    ASSERT_LT(worker, threads);
    auto& mine = busy[static_cast<std::size_t>(worker)];
    if (++mine != 1) is_shared = true;
    std::this_thread::yield();
    --mine;
  });
  EXPECT_FALSE(is_shared);
}

TEST(ParallelFor, SeveralThreadsTakePart) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return seen.size();
  };
  parallel_for(2, 2, [&](index_t, int) {
    {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    for (int waits = 0; waits < 20000 && count() < 2; ++waits) rest();  // on a busy machine
  });
  EXPECT_EQ(count(), 2u);
}

TEST(ParallelFor, TheFirstExceptionEndsTheLoop) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(parallel_for(100000, 3,
                            [&](index_t i, int) {
                              ++calls;
                              if (i == 5) throw std::runtime_error("five");
                              if (i > 5) rest();  // all pauses together take half a minute
                            }),
               std::runtime_error);
  EXPECT_LT(calls, 100000);
}

TEST(ParallelFor, ALoopMayRunWithinAnother) {
  std::atomic<int> calls = 0;
  parallel_for(8, 3, [&](index_t, int) { parallel_for(8, 3, [&](index_t, int) { ++calls; }); });
  EXPECT_EQ(calls, 64);
}

TEST(ParallelFor, LoopsAtOneTimeShareTheHelpersOfOne) {
  constexpr int threads = 4, callers = 3;
  std::atomic<int> running = 0, most = 0;
  const auto loop = [&] {
    parallel_for(60, threads, [&](index_t, int) {
      const int now = ++running;
      int known = most;
      while (known < now && !most.compare_exchange_weak(known, now)) {
      }
      rest();
      --running;
    });
  };
  {
    std::vector<std::jthread> others;
    for (int i = 0; i < callers; ++i) others.emplace_back(loop);
  }
  EXPECT_LE(most, callers + 4) << "other tests have asked for 5 threads, which makes 4 helpers";
}

}  // namespace
}  // namespace qrtool::parallel_test
