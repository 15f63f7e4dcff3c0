// SPDX-License-Identifier: Apache-2.0
// comm_test.cpp: ranks agree on values and on failures.
#include "core/machine/comm.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/local_ranks.hpp"

namespace qrtool::comm_test {
namespace {

using test::run_ranks;

TEST(Comm, AFailureIsRaisedAgainAsTheClassOfItsCode) {
  const auto round_trip = [](auto error) {
    Failure failure;
    try {
      throw error;
    } catch (...) {
      failure = Failure::current();
    }
    try {
      failure.raise();
    } catch (const decltype(error)& raised) {
      EXPECT_STREQ(raised.what(), error.what());
      EXPECT_EQ(raised.hint(), error.hint());
      EXPECT_EQ(raised.code(), error.code());
      return true;
    } catch (...) {
    }
    return false;
  };
  EXPECT_TRUE(round_trip(UsageError("a", "b")));
  EXPECT_TRUE(round_trip(InputError("a", "b")));
  EXPECT_TRUE(round_trip(DeviceError("a", "b")));
  EXPECT_TRUE(round_trip(OutputError("a", "b")));
  EXPECT_TRUE(round_trip(LimitError("a", "b")));
  EXPECT_TRUE(round_trip(InternalError("a", "b")));
}

TEST(Comm, ForeignExceptionsGetACode) {
  const auto code_of = [](auto error) {
    try {
      throw error;
    } catch (...) {
      return Failure::current().code;
    }
  };
  EXPECT_EQ(code_of(std::bad_alloc()), ExitCode::limit);
  EXPECT_EQ(code_of(std::runtime_error("a")), ExitCode::internal);
  EXPECT_EQ(code_of(1), ExitCode::internal);
}

TEST(Comm, BroadcastGivesEveryRankTheValuesOfRank0) {
  for (const int size : {1, 2, 5}) {
    std::vector<std::array<int, 3>> found(static_cast<std::size_t>(size));
    run_ranks(size, [&](Comm& comm) {
      std::array<int, 3> values{};
      if (comm.is_root()) values = {7, 8, 9};
      broadcast(comm, values.data(), values.size());
      found[static_cast<std::size_t>(comm.rank())] = values;
    });
    for (const auto& values : found) EXPECT_EQ(values, (std::array<int, 3>{7, 8, 9})) << size;
  }
}

/// Returns what every rank says after together(), where the ranks in `failing` fail.
std::vector<std::string> said_together(int size, const std::vector<int>& failing) {
  std::vector<std::string> said(static_cast<std::size_t>(size));
  run_ranks(size, [&](Comm& comm) {
    try {
      together(comm, [&] {
        for (const int rank : failing) {
          if (rank == comm.rank()) throw InputError("rank " + std::to_string(rank));
        }
      });
    } catch (const InputError& error) {
      said[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  return said;
}

TEST(Comm, AFailureOfOneRankIsAFailureOfAllInTheSameWords) {
  for (const int size : {1, 2, 4}) {
    const auto all = static_cast<std::size_t>(size);
    EXPECT_EQ(said_together(size, {}), std::vector<std::string>(all, ""));
    const int last = size - 1;
    EXPECT_EQ(said_together(size, {last}),
              std::vector<std::string>(all, "rank " + std::to_string(last)));
  }
  EXPECT_EQ(said_together(4, {3, 1}), std::vector<std::string>(4, "rank 1")) << "the lowest rank";
}

TEST(Comm, OneProcessIsItsOwnRoot) {
  SingleComm comm;
  int value = 3;
  broadcast(comm, &value, 1);
  EXPECT_EQ(value, 3);
  EXPECT_TRUE(comm.is_root());
  EXPECT_EQ(comm.size(), 1);
  EXPECT_THROW(together(comm, [] { throw LimitError("a"); }), LimitError);
}

}  // namespace
}  // namespace qrtool::comm_test
