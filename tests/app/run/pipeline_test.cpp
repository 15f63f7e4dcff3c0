// SPDX-License-Identifier: Apache-2.0
#include "app/run/pipeline.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/parallel.hpp"

namespace qrtool {
namespace {

using namespace std::chrono_literals;

TEST(BoundedQueue, KeepsTheOrderAndTheBound) {
  BoundedQueue<int> queue(2);
  std::atomic<int> pushed = 0;
  std::jthread producer([&] {
    for (int i = 0; i < 5; ++i, ++pushed) queue.push(i);
    queue.close();
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(pushed, 2) << "the third push waits for room";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.pop(), i);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, CloseKeepsWhatIsThereCancelDoesNot) {
  BoundedQueue<int> closed(2), cancelled(2);
  closed.push(1);
  cancelled.push(1);
  closed.close();
  cancelled.cancel();
  EXPECT_FALSE(closed.push(2));
  EXPECT_EQ(closed.pop(), 1);
  EXPECT_EQ(closed.pop(), std::nullopt);
  EXPECT_EQ(cancelled.pop(), std::nullopt);
}

TEST(BoundedQueue, CancelWakesBothSides) {
  BoundedQueue<int> empty(1), full(1);
  full.push(1);
  std::jthread consumer([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  std::jthread producer([&] { EXPECT_FALSE(full.push(2)); });
  std::this_thread::sleep_for(5ms);
  empty.cancel();
  full.cancel();
}

struct Buffer {
  int value = 0;
};

/// Passes 0 .. count - 1 through the pipeline. Each stage adds a digit and may throw at one value.
struct Passage {
  int count;
  std::string throw_in;
  int throw_at = -1;
  std::vector<int> written;
  int read = 0;

  void maybe_throw(const std::string& stage, int value) const {
    if (stage == throw_in && value % 1000 == throw_at) throw std::runtime_error(stage);
  }
  StageSeconds operator()(int buffers) {
    std::vector<Buffer> all(static_cast<std::size_t>(buffers));
    return run_pipeline(
        all,
        [&](Buffer& b) {
          if (read == count) return false;
          b.value = read++;
          maybe_throw("read", b.value);
          return true;
        },
        [&](Buffer& b) {
          maybe_throw("work", b.value);
          b.value += 1000;
        },
        [&](Buffer& b) {
          maybe_throw("write", b.value);
          written.push_back(b.value);
        });
  }
};

TEST(Pipeline, EveryChunkPassesInOrder) {
  for (const int buffers : {1, 2, 3, 4, 9}) {
    for (const int count : {0, 1, 2, 3, 100}) {
      Passage run{count, "", -1, {}};
      run(buffers);
      std::vector<int> expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), 1000);
      EXPECT_EQ(run.written, expected) << buffers << " buffers, " << count << " chunks";
    }
  }
}

TEST(Pipeline, AnErrorInAnyStageStopsAllAndComesOut) {
  for (const std::string stage : {"read", "work", "write"}) {
    for (const int buffers : {1, 2, 4}) {
      for (const int at : {0, 1, 7, 99}) {
        Passage run{100, stage, at, {}};
        try {
          run(buffers);
          ADD_FAILURE() << "no error from " << stage;
        } catch (const std::runtime_error& error) {
          EXPECT_EQ(error.what(), stage);
        }
        EXPECT_LE(run.written.size(), static_cast<std::size_t>(at));
        EXPECT_LE(run.read, at + buffers + 1) << "reading goes on after an error";
      }
    }
  }
}

TEST(Pipeline, TheFirstErrorWins) {
  std::vector<Buffer> buffers(3);
  std::atomic<int> worked = 0;
  std::atomic<bool> thrown = false;
  const auto work = [&](Buffer&) {
    if (++worked < 2) return;
    thrown = true;
    throw std::runtime_error("first");
  };
  const auto write = [&](Buffer&) {
    while (!thrown) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);
    throw std::runtime_error("second");
  };
  try {
    run_pipeline(
        buffers, [](Buffer&) { return true; }, work, write);
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(Pipeline, StagesOverlap) {
  std::vector<Buffer> buffers(3);
  int left = 10;
  const Stopwatch watch;
  const StageSeconds seconds = run_pipeline(
      buffers,
      [&](Buffer&) {
        std::this_thread::sleep_for(10ms);
        return left-- > 0;
      },
      [](Buffer&) { std::this_thread::sleep_for(10ms); },
      [](Buffer&) { std::this_thread::sleep_for(10ms); });
  const double sum = seconds.read + seconds.work + seconds.write;
  EXPECT_GE(seconds.work, 0.1);
  EXPECT_LT(watch.seconds(), 0.75 * sum) << "one after the other takes as long as the sum";
}

TEST(Pipeline, OneBufferIsNeverInTwoStages) {
  std::vector<Buffer> buffers(1);
  std::atomic<int> busy = 0;
  int left = 50;
  const auto alone = [&](auto result) {
    EXPECT_EQ(busy++, 0);
    std::this_thread::yield();
    --busy;
    return result;
  };
  run_pipeline(
      buffers, [&](Buffer&) { return alone(left-- > 0); }, [&](Buffer&) { alone(0); },
      [&](Buffer&) { alone(0); });
}

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> calls(100);
    parallel_for(100, threads, [&](index_t i, int worker) {
      EXPECT_LT(worker, threads);
      ++calls[static_cast<std::size_t>(i)];
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelFor, RethrowsAndStops) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(parallel_for(100000, 3,
                            [&](index_t i, int) {
                              ++calls;
                              if (i == 10) throw std::runtime_error("x");
                              std::this_thread::sleep_for(10us);
                            }),
               std::runtime_error);
  EXPECT_LT(calls, 100000);
}

}  // namespace
}  // namespace qrtool
