// SPDX-License-Identifier: Apache-2.0
// prepare_and_write_test.cpp: every piece is prepared once and then written, in order and by one
// thread at a time; an error of writing ends the loop.
#include "io/file/prepare_and_write.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace qrtool::prepare_and_write_test {
namespace {

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

TEST(PrepareAndWrite, WritesEveryPieceInOrderAfterPreparingItOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const index_t count : {0, 1, 2, 3, 200}) {
      std::vector<std::atomic<int>> prepared(static_cast<std::size_t>(count));
      std::vector<index_t> written;
      std::set<std::thread::id> writers;
      std::atomic<int> beside = 0;
      prepare_and_write(
          count, threads,
          [&](index_t i) {
            if (i % 7 == 3) rest();  // so that the writer has to wait
            ++prepared[static_cast<std::size_t>(i)];
          },
          [&](index_t i) {
            EXPECT_EQ(prepared[static_cast<std::size_t>(i)], 1);
            written.push_back(i);
            writers.insert(std::this_thread::get_id());
          },
          [&] { ++beside; });
      ASSERT_EQ(std::ssize(written), count) << threads;
      for (index_t i = 0; i < count; ++i) EXPECT_EQ(written[static_cast<std::size_t>(i)], i);
      for (const auto& times : prepared) EXPECT_EQ(times, 1);
      EXPECT_EQ(std::ssize(writers), count > 0 ? 1 : 0);
      EXPECT_EQ(beside, 1);
    }
  }
}

TEST(PrepareAndWrite, OthersPrepareWhileOneWrites) {
  std::atomic<bool> is_ahead = false;
  prepare_and_write(
      2, 2, [&](index_t i) { is_ahead = is_ahead || i == 1; },
      [&](index_t i) {
        if (i > 0) return;
        for (int waits = 0; waits < 20000 && !is_ahead; ++waits) rest();  // on a busy machine
        EXPECT_TRUE(is_ahead);
      },
      [] {});
}

TEST(PrepareAndWrite, AnErrorOfWritingEndsTheLoop) {
  for (const int threads : {1, 3}) {
    index_t last = -1;
    EXPECT_THROW(prepare_and_write(
                     1000, threads, [](index_t) {},
                     [&](index_t i) {
                       last = i;
                       if (i == 5) throw std::runtime_error("five");
                     },
                     [] {}),
                 std::runtime_error);
    EXPECT_EQ(last, 5);
  }
}

}  // namespace
}  // namespace qrtool::prepare_and_write_test
