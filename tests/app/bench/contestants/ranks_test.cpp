// SPDX-License-Identifier: Apache-2.0
// ranks_test.cpp: tests R over ranks with threads that pass messages as ranks do.
#include "app/bench/contestants/ranks.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <barrier>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "app/bench/timing/cases.hpp"
#include "app/bench/timing/data.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "tests/support/householder.hpp"

namespace qrtool::ranks_test {
namespace {

/// The state that the ranks share: messages that are not received yet, and which ranks have failed.
struct World {
  explicit World(int ranks)
      : sent(static_cast<std::size_t>(ranks), std::vector<Box>(static_cast<std::size_t>(ranks))),
        failures(static_cast<std::size_t>(ranks)),
        meeting(ranks) {}

  using Box = std::vector<std::vector<std::byte>>;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<Box>> sent;  // [from][to]
  std::vector<std::optional<Failure>> failures;
  std::barrier<> meeting;
};

class ThreadComm final : public Comm {
 public:
  ThreadComm(World& world, int rank) : world_(world), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.failures.size()); }

  void send(int to, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(world_.mutex);
    box(rank_, to).emplace_back(bytes.begin(), bytes.end());
    world_.changed.notify_all();
  }
  void receive(int from, std::span<std::byte> bytes) override {
    std::unique_lock lock(world_.mutex);
    world_.changed.wait(lock, [&] { return !box(from, rank_).empty(); });
    const std::vector<std::byte> message = box(from, rank_).front();
    box(from, rank_).erase(box(from, rank_).begin());
    ASSERT_EQ(message.size(), bytes.size());
    std::copy(message.begin(), message.end(), bytes.begin());
  }
  std::optional<Failure> agree(const std::optional<Failure>& mine) override {
    world_.failures[static_cast<std::size_t>(rank_)] = mine;
    world_.meeting.arrive_and_wait();
    std::optional<Failure> first;
    for (const auto& failure : world_.failures)
      if (failure && !first) first = failure;
    world_.meeting.arrive_and_wait();
    return first;
  }

 private:
  World::Box& box(int from, int to) {
    return world_.sent[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  World& world_;
  int rank_;
};

/// A tool whose first run fails.
class FailingOnce final : public CpuBackend {
 public:
  using CpuBackend::CpuBackend;
  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override {
    if (!std::exchange(has_failed_, true)) throw DeviceError("lost", "");
    return CpuBackend::factor_any(plan, any);
  }

 private:
  bool has_failed_ = false;
};

/// Says how a test differs from three ranks that use the CPU's usual variants.
struct Ranks {
  int count = 3;
  std::string variant{};
  int failing = -1;  // rank whose first run fails
};

/// Calls body(contestant) on rank 0 while the others serve. Each rank has a separate CPU backend.
template <class Body>
void on_ranks(Body body, const Ranks& ranks = {}) {
  // Under the thread sanitizer, LLVM 14's OpenMP reads through a null pointer in `critical` unless
  // the main thread uses OpenMP first.
  omp_get_max_threads();
  World world(ranks.count);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks.count; ++rank)
    threads.emplace_back([&world, &body, &ranks, rank] {
      ThreadComm comm(world, rank);
      const Limits limits{.host_bytes = std::size_t{1} << 30};
      CpuBackend sound(limits);
      FailingOnce failing(limits);
      Backend& backend = rank == ranks.failing ? static_cast<Backend&>(failing) : sound;
      const BenchSetup setup{backend, ranks.variant, limits, 7 + static_cast<std::uint64_t>(rank)};
      if (comm.is_root()) {
        body(*make_ranked_tool(setup, comm));
      } else {
        serve_ranked_tool(setup, comm);
      }
    });
}

template <class T>
void expect_r_of_all_rows(index_t m, index_t n, int ranks = 3) {
  const index_t k = std::min(m, n);
  Batch<T> r(1, k, n), a(1, m, n);
  on_ranks(
      [&](Contestant& tool) {
        const auto run = tool.prepare(problem_of({m, n, 1}, element_type<T>, Mode::r), {}, 0);
        for (int again = 0; again < 2; ++again) EXPECT_GT(run->run().factor, 0);
        run->copy_r(writable_bytes_of(r.view().data, static_cast<std::size_t>(k * n)));
      },
      {.count = ranks});
  for (int rank = 0; rank < ranks; ++rank) {
    const index_t first = m * rank / ranks, rows = m * (rank + 1) / ranks - first;
    const BenchData<T> own(1, rows, n, 7 + static_cast<std::uint64_t>(rank), 1);
    std::copy_n(own.view()[0].data, rows * n, a.view()[0].row_block(first, rows).data);
  }
  const auto reference = test::reference_qr<T>(a.view()[0]);
  for (index_t i = 0; i < k; ++i)
    for (index_t j = i; j < n; ++j)
      EXPECT_NEAR(std::abs(r.view()[0](i, j)), std::abs(reference.r_at(i, j)),
                  100 * std::numeric_limits<T>::epsilon() * std::sqrt(double(m)))
          << i << "," << j;
}

TEST(BenchRanks, RIsThatOfAllRows) {
  expect_r_of_all_rows<float>(1000, 5);
  expect_r_of_all_rows<double>(1000, 5);
  expect_r_of_all_rows<float>(7, 4);  // fewer rows than columns on every rank
  expect_r_of_all_rows<float>(3, 5);  // and in all
  expect_r_of_all_rows<float>(1000, 5, 6);
  expect_r_of_all_rows<double>(1000, 5, 6);
}

TEST(BenchRanks, AFailureOfTheRanksIsThrownOnRankZero) {
  const auto prepare = [](Contestant& tool) {
    EXPECT_THROW(tool.prepare(problem_of({1000, 5, 1}, ElementType::float32, Mode::r), {}, 0),
                 UsageError);
  };
  on_ranks(prepare, {.variant = "cpu/none"});
}

TEST(BenchRanks, AFailureInARunOfAnyRankIsThrownOnRankZeroAndTheNextRunIsSound) {
  for (int failing = 0; failing < 3; ++failing)
    on_ranks(
        [](Contestant& tool) {
          const auto run =
              tool.prepare(problem_of({1000, 5, 1}, ElementType::float32, Mode::r), {}, 0);
          EXPECT_THROW(run->run(), DeviceError);
          EXPECT_GT(run->run().factor, 0);
        },
        {.failing = failing});
}

TEST(BenchRanks, WhatRanksDoNotShareIsRefusedOnAllOfThem) {
  on_ranks([](Contestant& tool) {
    EXPECT_THROW(tool.prepare(problem_of({1000, 5, 1}, ElementType::float32, Mode::reduced), {}, 0),
                 UsageError);
    EXPECT_THROW(tool.prepare(problem_of({1000, 5, 2}, ElementType::float32, Mode::r), {}, 0),
                 UsageError);
    EXPECT_THROW(tool.prepare(problem_of({2, 5, 1}, ElementType::float32, Mode::r), {}, 0),
                 UsageError);
    EXPECT_GT(
        tool.prepare(problem_of({1000, 5, 1}, ElementType::float32, Mode::r), {}, 0)->run().factor,
        0);
  });
}

}  // namespace
}  // namespace qrtool::ranks_test
