// SPDX-License-Identifier: Apache-2.0
#include "core/machine/host.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "tests/support/temporary_directory.hpp"

namespace qrtool::host_test {
namespace {

using test::TemporaryDirectory;
using test::write_text;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

TEST(Host, SeesMemoryAndCores) {
  EXPECT_GT(free_memory_bytes(), std::size_t{1} << 20);
  EXPECT_LT(free_memory_bytes(), std::size_t{1} << 50);
  EXPECT_GE(available_cores(), 1);
}

/// One of four ranks of which two share this machine.
class FourRanks final : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 4; }
  int local_size() const override { return 2; }
  void send(int, std::span<const std::byte>) override {}
  void receive(int, std::span<std::byte>) override {}
  std::optional<Failure> agree(const std::optional<Failure>& mine) override { return mine; }
};

TEST(Host, TheUsersLimitsCount) {
  const Limits limits = host_limits(1 << 20, 3);
  EXPECT_EQ(limits.host_bytes, 1u << 20);
  EXPECT_EQ(limits.threads, 3);
  const Limits of_rank = rank_limits(1 << 20, 3, FourRanks());
  EXPECT_EQ(of_rank.host_bytes, 1u << 20) << "what the user gives is for each rank";
  EXPECT_EQ(of_rank.threads, 3);
  EXPECT_EQ(of_rank.ranks, 4);
}

TEST(Host, RanksShareTheMachine) {
  const Limits limits = host_limits({}, 0);
  EXPECT_EQ(limits.threads, available_cores());
  EXPECT_LE(available_cores(), machine_cores());
  const Limits of_rank = rank_limits({}, 0, FourRanks());
  if (available_cores() == machine_cores()) {
    EXPECT_EQ(of_rank.threads, std::max(1, machine_cores() / 2));
  }
  EXPECT_LT(of_rank.host_bytes, 3 * (limits.host_bytes / 4)) << "half, as free memory varies";
}

TEST(Host, ControlGroupsOfVersion2LimitTheirChildren) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root / "a/b");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), unlimited);
  write_text(root / "a/b/memory.max", "max\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), unlimited);
  write_text(root / "a/memory.max", "1000\n");
  write_text(root / "a/memory.current", "600\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), 400u);
  write_text(root / "a/memory.stat", "anon 7\nactive_file 100\ninactive_file 50\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), 550u) << "cached files can be given up";
  write_text(root / "a/b/memory.max", "300\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), 300u);
}

TEST(Host, QuotasOfControlGroupsLimitTheCores) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root / "a/b");
  constexpr int none = std::numeric_limits<int>::max();
  EXPECT_EQ(cgroup_cores(root.path(), root / "a/b"), none);
  write_text(root / "a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cores(root.path(), root / "a/b"), none);
  write_text(root / "a/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_cores(root.path(), root / "a/b"), 3) << "the parent's, rounded up";
  write_text(root / "a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cores(root.path(), root / "a/b"), 1);
  write_text(root / "cpu.cfs_quota_us", "-1\n");
  write_text(root / "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cores(root.path(), root.path()), none) << "version 1, without a quota";
  write_text(root / "cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(cgroup_cores(root.path(), root.path()), 2);
}

TEST(Host, ControlGroupsOfVersion1CountToo) {
  const TemporaryDirectory root;
  write_text(root / "memory.limit_in_bytes", "1000\n");
  write_text(root / "memory.usage_in_bytes", "900\n");
  write_text(root / "memory.stat", "inactive_file 1\ntotal_inactive_file 200\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "not/there"), 300u);
}

TEST(Host, AddressSpaceLimitCounts) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer takes terabytes of address space";
#endif
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit lower = before;
  lower.rlim_cur = rlim_t{1} << 40;
  if (setrlimit(RLIMIT_AS, &lower) != 0) GTEST_SKIP() << "sanitizers take more address space";
  EXPECT_LT(free_memory_bytes(), std::size_t{1} << 40);
  setrlimit(RLIMIT_AS, &before);
}

}  // namespace
}  // namespace qrtool::host_test
