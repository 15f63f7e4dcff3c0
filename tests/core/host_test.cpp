// SPDX-License-Identifier: Apache-2.0
#include "core/host.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "tests/support/temporary_directory.hpp"

namespace qrtool {
namespace {

using test::TemporaryDirectory;
using test::write_text;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

TEST(Host, SeesMemoryAndCores) {
  EXPECT_GT(free_memory_bytes(), std::size_t{1} << 20);
  EXPECT_LT(free_memory_bytes(), std::size_t{1} << 50);
  EXPECT_GE(available_cores(), 1);
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
}  // namespace qrtool
