// SPDX-License-Identifier: Apache-2.0
#include "app/run/pipeline/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

namespace qrtool::pipeline_test {
namespace {

using namespace std::chrono_literals;

TEST(BoundedQueue, KeepsTheOrderAndTheBound) {
  BoundedQueue<int> queue(2);
  std::atomic<int> pushed = 0;
  std::jthread producer([&] {
    for (int i = 0; i < 5; ++i, ++pushed) queue.push(i);
    queue.close();
  });
  for (int popped = 0; popped < 5; ++popped) {
    while (pushed < std::min(5, popped + 2)) std::this_thread::yield();
    for (int turn = 0; turn < 100; ++turn, std::this_thread::yield())
      EXPECT_LE(pushed, popped + 2) << "the next push waits for room";
    EXPECT_EQ(queue.pop(), popped);
  }
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
  empty.cancel();
  full.cancel();
}

struct Buffer {
  int value = 0;
};

/// Steps from three functions, which count for themselves.
template <class Read, class Work, class Keep>
struct Stages {
  Read read;
  Work work;
  Keep keep;

  void begin(Buffer&, index_t) const {}
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
    Stages stages{[&](Buffer& b) {
                    b.value = read++;
                    maybe_throw("read", b.value);
                  },
                  [&](Buffer& b) {
                    maybe_throw("work", b.value);
                    b.value += 1000;
                  },
                  [&](Buffer& b) {
                    maybe_throw("write", b.value);
                    written.push_back(b.value);
                  }};
    return run_stages(count, all, stages);
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

/// Becomes true when the thread that reads ends.
std::atomic<bool> reader_has_left = false;
struct SaysThatItLeaves {
  ~SaysThatItLeaves() { reader_has_left = true; }
};

/// The reader leaves only where an error is known. So the second error comes after the first one.
TEST(Pipeline, TheFirstErrorWins) {
  std::vector<Buffer> buffers(3);
  reader_has_left = false;
  int worked = 0;
  const auto read = [](Buffer&) { thread_local SaysThatItLeaves at_exit; };
  const auto work = [&](Buffer&) {
    if (++worked == 2) throw std::runtime_error("first");
  };
  const auto write = [&](Buffer&) {
    while (!reader_has_left) std::this_thread::yield();
    throw std::runtime_error("second");
  };
  try {
    Stages stages{read, work, write};
    run_stages(1 << 30, buffers, stages);
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

/// The first buffer is being written, the second one is at work and the third one is being read:
/// all three stages meet.
TEST(Pipeline, StagesOverlap) {
  std::vector<Buffer> buffers(3);
  std::latch meeting(3);
  const auto meet = [&] {
    meeting.count_down();
    for (int waits = 0; waits < 20000 && !meeting.try_wait(); ++waits)
      std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(meeting.try_wait()) << "one stage waits for the other";
  };
  int read = 0, worked = 0, written = 0;
  Stages stages{[&](Buffer&) {
                  if (++read == 3) meet();
                },
                [&](Buffer&) {
                  if (++worked == 2) meet();
                },
                [&](Buffer&) {
                  if (++written == 1) meet();
                }};
  run_stages(3, buffers, stages);
  EXPECT_EQ(written, 3);
}

TEST(OverlapClock, CountsTheTimeOfAllButOne) {
  OverlapClock clock;
  const Stopwatch watch;
  const auto pause = [] { std::this_thread::sleep_for(5ms); };
  clock.begin();
  pause();
  EXPECT_EQ(clock.seconds(), 0);
  clock.begin();
  pause();
  clock.begin();
  pause();
  clock.end();
  clock.end();
  const double two_and_three = clock.seconds(), all = watch.seconds();
  EXPECT_GE(two_and_three, 0.015);  // once 5 ms of two, twice 5 ms of three
  EXPECT_LE(two_and_three, 2 * all);
  pause();
  clock.end();
  pause();
  EXPECT_EQ(clock.seconds(), two_and_three);
}

/// The stages of run_stages() with a step that frees.
struct FreeingSteps {
  bool fails = false;
  int worked = 0, kept = 0, freed_after = -1;

  void begin(Buffer& buffer, index_t number) const { buffer.value = static_cast<int>(number); }
  void read(Buffer&) const {}
  void work(Buffer&) {
    if (++worked == 5 && fails) throw std::runtime_error("work");
  }
  void keep(Buffer&) { ++kept; }
  void after_work(std::vector<Buffer>& buffers) {
    EXPECT_EQ(freed_after, -1) << "it is called once";
    EXPECT_EQ(buffers.size(), 2U);
    freed_after = worked;
  }
};

TEST(Pipeline, FreesWhenAllIsWorkedOnAndNotAfterAFailure) {
  std::vector<Buffer> buffers(2);
  FreeingSteps good, bad{.fails = true};
  const StageSeconds seconds = run_stages(9, buffers, good);
  EXPECT_EQ(good.freed_after, 9);
  EXPECT_EQ(good.kept, 9);
  EXPECT_GT(seconds.free, 0);
  EXPECT_THROW(run_stages(9, buffers, bad), std::runtime_error);
  EXPECT_EQ(bad.freed_after, -1);
}

TEST(Pipeline, OneBufferIsNeverInTwoStages) {
  std::vector<Buffer> buffers(1);
  std::atomic<int> busy = 0;
  const auto alone = [&](Buffer&) {
    EXPECT_EQ(busy++, 0);
    std::this_thread::yield();
    --busy;
  };
  Stages stages{alone, alone, alone};
  run_stages(50, buffers, stages);
}

}  // namespace
}  // namespace qrtool::pipeline_test
