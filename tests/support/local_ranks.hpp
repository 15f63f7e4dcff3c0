// SPDX-License-Identifier: Apache-2.0
// local_ranks.hpp: runs the ranks of a Comm as threads of the test, so that code for several
// processes is tested without MPI.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/machine/comm.hpp"

namespace qrtool::test {

/// A rank that waits for longer waits for ever.
constexpr std::chrono::seconds longest_wait{120};

/// The mailboxes that the ranks share.
struct LocalWorld {
  explicit LocalWorld(int size) : failures(static_cast<std::size_t>(size)), meeting(size) {}

  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> mail;  // by (from, to)
  std::vector<std::optional<Failure>> failures;                            // by rank
  std::barrier<> meeting;
};

class LocalComm final : public Comm {
 public:
  LocalComm(LocalWorld& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.failures.size()); }
  void send(int to, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(world_.mutex);
    world_.mail[{rank_, to}].emplace_back(bytes.begin(), bytes.end());
    world_.arrived.notify_all();
  }
  void receive(int from, std::span<std::byte> bytes) override {
    std::unique_lock lock(world_.mutex);
    auto& mail = world_.mail[{from, rank_}];
    if (!world_.arrived.wait_for(lock, longest_wait, [&] { return !mail.empty(); })) {
      ADD_FAILURE() << "rank " << rank_ << " waits for a message that rank " << from
                    << " never sends";
      throw InternalError("no message");
    }
    if (mail.front().size() != bytes.size()) throw InternalError("another number of bytes");
    std::memcpy(bytes.data(), mail.front().data(), bytes.size());
    mail.pop_front();
  }
  std::optional<Failure> agree(const std::optional<Failure>& mine) override {
    world_.failures[static_cast<std::size_t>(rank_)] = mine;
    world_.meeting.arrive_and_wait();
    std::optional<Failure> lowest;
    for (auto it = world_.failures.rbegin(); it != world_.failures.rend(); ++it) {
      if (*it) lowest = *it;
    }
    world_.meeting.arrive_and_wait();
    return lowest;
  }

 private:
  LocalWorld& world_;
  int rank_;
};

/// Calls body(comm) on `size` ranks and returns when all have ended.
template <class Body>
void run_ranks(int size, Body body) {
  LocalWorld world(size);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      LocalComm comm(world, rank);
      body(comm);
    });
  }
}

}  // namespace qrtool::test
