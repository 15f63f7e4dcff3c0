// SPDX-License-Identifier: Apache-2.0
// builders_test.cpp: the caller gets every job once, whatever becomes of the processes that build
// beside it.
#include "gpu/host/builders.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::builders_test {
namespace {

using namespace std::chrono_literals;

/// More than a socket holds, so that a builder that does not read is noticed.
std::vector<BuildJob> jobs(int count) {
  std::vector<BuildJob> list;
  for (int i = 0; i < count; ++i) {
    list.push_back({"-DNUMBER=" + std::to_string(i),
                    "__kernel void set(__global int* x) { x[0] = NUMBER; }\n" +
                        std::string(std::size_t{1} << 20, '\n')});
  }
  return list;
}

/// Processes that run a line of the shell, which gets the device and this process as $0 and $1.
BuilderLimits shell(const std::string& line, std::chrono::milliseconds most_time = 10s,
                    int most_processes = 3) {
  return {.command = {"/bin/sh", "-c", line},
          .most_processes = most_processes,
          .patience = 0ms,
          .most_time = most_time};
}

struct Had {
  std::set<std::size_t> jobs;
  int built = 0;  // by builders
};

/// Takes every job; each takes the caller `time`. Expects to get no job twice.
Had take_all(Builders& builders, std::chrono::milliseconds time = 30ms) {
  Had had;
  while (const auto next = builders.next()) {
    EXPECT_TRUE(had.jobs.insert(next->job).second) << next->job;
    had.built += next->is_built ? 1 : 0;
    std::this_thread::sleep_for(time);
  }
  return had;
}

/// Whether this process has a child, ended or not.
bool has_child() {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Whether no child is left, a few seconds from now at the latest.
bool loses_children() {
  for (int i = 0; has_child() && i < 500; ++i) std::this_thread::sleep_for(10ms);
  return !has_child();
}

struct Case {
  const char* name;
  BuilderLimits limits;
};
void PrintTo(const Case& used, std::ostream* out) { *out << used.name; }

class Failing : public testing::TestWithParam<Case> {};

TEST_P(Failing, LeavesEveryJobToTheCaller) {
  {
    Builders builders(jobs(6), GetParam().limits, 0);
    const Had had = take_all(builders);
    EXPECT_EQ(had.jobs.size(), 6U);
    EXPECT_EQ(had.built, 0);
  }
  EXPECT_TRUE(loses_children());
}

INSTANTIATE_TEST_SUITE_P(
    Builders, Failing,
    testing::Values(Case{"no_command", {}},
                    Case{"cannot_start", {.command = {"/no/such/program"}, .most_processes = 3}},
                    Case{"fails_at_once", shell("exit 1")},
                    Case{"never_is_ready", shell("exec sleep 60")},
                    Case{"says_something_else", shell("printf x >&0; exec sleep 60")},
                    // One, since sending to each takes a second or two to fail.
                    Case{"does_not_read", shell("printf r >&0; exec sleep 60", 10s, 1)},
                    Case{"ends_after_reading", shell("printf r >&0; head -c 100 >&2")},
                    Case{"is_killed", shell("printf r >&0; head -c 1000000 >&2; kill -9 $$")},
                    Case{"takes_too_long", shell("printf r >&0; exec cat >&2", 100ms)}),
    [](const auto& used) { return std::string(used.param.name); });

TEST(Builders, BuildJobsForTheCallerWithoutItsFiles) {
  const int file = fcntl(STDERR_FILENO, F_DUPFD, 50);
  const std::vector<BuildJob> list = jobs(8);
  const std::size_t bytes = 16 + list[0].options.size() + list[0].text.size();  // with two lengths
  const std::string line = "test ! -e /proc/$$/fd/" + std::to_string(file) +
                           " || exit; printf r >&0; while head -c " + std::to_string(bytes) +
                           " | tail -c 1 | grep -q ''; do printf r >&0; done";
  Builders builders(list, shell(line), 0);
  const Had had = take_all(builders, 300ms);
  close(file);
  EXPECT_EQ(had.jobs.size(), 8U);
  EXPECT_GT(had.built, 0);
}

TEST(Builders, DoNotStartWhereBuildsAreShort) {
  const std::string file = testing::TempDir() + "qrtool-builders-" + std::to_string(getpid());
  BuilderLimits limits = shell("touch " + file);
  limits.patience = 10s;
  {
    Builders builders(jobs(6), limits, 0);
    EXPECT_EQ(take_all(builders).jobs.size(), 6U);
  }
  EXPECT_NE(access(file.c_str(), F_OK), 0);
}

TEST(Builders, CanBeGivenUpWhileTheyBuild) {
  Builders builders(jobs(6), shell("printf r >&0; exec cat >&2"), 0);
  std::set<std::size_t> had;
  had.insert(builders.next()->job);
  std::this_thread::sleep_for(500ms);  // the builders have jobs now
  builders.give_up();
  while (const auto next = builders.next()) {
    EXPECT_FALSE(next->is_built);
    EXPECT_TRUE(had.insert(next->job).second);
  }
  EXPECT_EQ(had.size(), 6U);
}

TEST(Builders, EndWithTheirCaller) {
  {
    Builders builders(jobs(6), shell("printf r >&0; exec cat >&2"), 0);
    builders.next();
    std::this_thread::sleep_for(200ms);
    EXPECT_TRUE(has_child());
  }
  EXPECT_TRUE(loses_children());
}

/// The program itself as builder, on the device under test: the build is the device's, and where
/// the driver has a cache on disk, the caller finds it there.
TEST(Builders, OfTheProgramItselfBuild) {
  SKIP_WITHOUT_OPENCL();
  const BuilderLimits limits{.command = {QRTOOL_BINARY, "--build-kernels"},
                             .most_processes = 1,
                             .patience = 0ms,
                             .most_time = 60s};
  int built = 0;
  for (const auto time : {1s, 5s, 60s}) {  // a machine may be busy
    Builders builders(jobs(3), limits, device_under_test().index);
    ASSERT_TRUE(builders.next());
    std::this_thread::sleep_for(time);  // its start, and two builds
    const Had had = take_all(builders, 0ms);
    EXPECT_EQ(had.jobs.size(), 2U);
    built = had.built;
    if (built == 2) break;
  }
  EXPECT_EQ(built, 2);
}

/// The parent is killed while the other end of the builder's input stays open.
TEST(Builders, OfTheProgramItselfAreKilledWithTheirParent) {
  SKIP_WITHOUT_OPENCL();
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // who then waits for the builder
  std::array<int, 2> ends{}, numbers{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  ASSERT_EQ(pipe(numbers.data()), 0);
  const std::string device = std::to_string(device_under_test().index);
  const pid_t parent = fork();
  if (parent == 0) {
    const std::string self = std::to_string(getpid());
    const pid_t builder = fork();
    if (builder == 0) {
      dup2(ends[1], STDIN_FILENO);
      execl(QRTOOL_BINARY, QRTOOL_BINARY, "--build-kernels", device.c_str(), self.c_str(), nullptr);
      _exit(127);
    }
    char ready = 0;
    const bool is_ready = read(ends[0], &ready, 1) == 1 && ready == 'r';
    if (is_ready && write(numbers[1], &builder, sizeof(builder)) > 0) kill(getpid(), SIGKILL);
    _exit(1);
  }
  close(numbers[1]);
  pid_t builder = -1;
  ASSERT_EQ(read(numbers[0], &builder, sizeof(builder)), static_cast<ssize_t>(sizeof(builder)));
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  ASSERT_EQ(waitpid(builder, &status, 0), builder);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  for (const int end : {ends[0], ends[1], numbers[0]}) close(end);
}

TEST(Builders, OfTheProgramItselfEndWithoutTheirParent) {
  // 1 is not its parent.
  const std::string command = std::string(QRTOOL_BINARY) + " --build-kernels 0 1 </dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace qrtool::test::builders_test
