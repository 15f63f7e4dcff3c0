// SPDX-License-Identifier: Apache-2.0
// atomic_file_test.cpp: the output is always the old file or the complete new one.
#include "io/file/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <thread>

#include "tests/io/file_test.hpp"

namespace qrtool::atomic_file_test {
namespace {

using Names = std::vector<std::string>;

void put(const AtomicFile& file, const std::string& text) {
  ASSERT_EQ(write(file.descriptor(), text.data(), text.size()), std::ssize(text));
}

std::string refusal(const std::string& path, bool force = false) {
  return error_of<OutputError>([&] { AtomicFile(path, force); });
}

struct stat status_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info;
}

class AtomicFileTest : public FileTest {};

TEST_F(AtomicFileTest, AppearsOnCommitOnly) {
  {
    AtomicFile file("o.h5", false);
    put(file, "new");
    EXPECT_FALSE(std::filesystem::exists("o.h5"));
    EXPECT_EQ(file.temporary_path().rfind(".o.h5.qrtool-", 0), 0u);
    EXPECT_TRUE(file.temporary_path().ends_with(".tmp"));
    file.commit();
    EXPECT_EQ(names(), Names{"o.h5"});
  }
  EXPECT_EQ(read_text("o.h5"), "new");
}

TEST_F(AtomicFileTest, AbandonedLeavesTheOldFile) {
  write_text("o.h5", "old");
  {
    AtomicFile file("o.h5", true);
    put(file, "new");
  }
  EXPECT_EQ(names(), Names{"o.h5"});
  EXPECT_EQ(read_text("o.h5"), "old");
}

TEST_F(AtomicFileTest, ForceReplaces) {
  write_text("o.h5", "old");
  AtomicFile file("o.h5", true);
  put(file, "new");
  EXPECT_EQ(read_text("o.h5"), "old");
  file.commit();
  EXPECT_EQ(read_text("o.h5"), "new");
}

TEST_F(AtomicFileTest, KeepsAFileThatAppearedMeanwhile) {
  {
    AtomicFile file("o.h5", false);
    put(file, "new");
    write_text("o.h5", "other");
    EXPECT_EQ(error_of<OutputError>([&] { file.commit(); }),
              "'o.h5' was created meanwhile | use --force to replace it");
  }
  EXPECT_EQ(names(), Names{"o.h5"});
  EXPECT_EQ(read_text("o.h5"), "other");
}

TEST_F(AtomicFileTest, Refusals) {
  write_text("old.h5", "old");
  std::filesystem::create_directory("folder");
  ASSERT_EQ(mkfifo("pipe", 0600), 0);
  ASSERT_EQ(symlink("nowhere", "dangling"), 0);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, "socket"};
  ASSERT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(descriptor);
  EXPECT_EQ(refusal("old.h5"), "'old.h5' exists | use --force to replace it");
  EXPECT_EQ(refusal("folder", true), "cannot write 'folder': it is a directory");
  EXPECT_EQ(
      refusal("new/", true),
      "cannot write 'new/': there is no such directory | name a file in a directory that exists");
  EXPECT_EQ(refusal("pipe", true), "cannot write 'pipe': it is a pipe, not a file");
  EXPECT_EQ(refusal("socket", true), "cannot write 'socket': it is a device or socket, not a file");
  EXPECT_EQ(refusal("/dev/full", true),
            "cannot write '/dev/full': it is a device or socket, not a file");
  EXPECT_EQ(refusal("dangling", true),
            "cannot write 'dangling': it is a symbolic link that leads nowhere");
  EXPECT_EQ(refusal("missing/o.h5"), "cannot write 'missing/o.h5': its directory does not exist");
  EXPECT_EQ(refusal("old.h5/o.h5"), "cannot write 'old.h5/o.h5': Not a directory");
  const std::string name(300, 'x');
  EXPECT_EQ(refusal(name), "cannot write '" + name + "': File name too long");
  EXPECT_EQ(refusal(""), "the name of the output is empty");
  EXPECT_EQ(refusal("a\x1b]b/c"), "cannot write 'a\\x1b]b/c': its directory does not exist");
  EXPECT_EQ(names(), (Names{"dangling", "folder", "old.h5", "pipe", "socket"}));
}

TEST_F(AtomicFileTest, DirectoryWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::filesystem::create_directory("folder");
  ASSERT_EQ(chmod("folder", 0500), 0);
  EXPECT_EQ(refusal("folder/o.h5"), "cannot write 'folder/o.h5': Permission denied");
  ASSERT_EQ(chmod("folder", 0700), 0);
}

TEST_F(AtomicFileTest, LongNamesThatAreStillPossible) {
  const std::string name(255, 'x');
  AtomicFile file(name, false);
  file.commit();
  EXPECT_EQ(names(), Names{name});
}

TEST_F(AtomicFileTest, WritesThroughASymbolicLink) {
  std::filesystem::create_directory("folder");
  write_text("folder/target", "old");
  ASSERT_EQ(symlink("folder/target", "link"), 0);
  AtomicFile file("link", true);
  put(file, "new");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink("link"));
  EXPECT_EQ(read_text("folder/target"), "new");
  EXPECT_EQ(names(), (Names{"folder", "link"}));
}

TEST_F(AtomicFileTest, ALinkOfAnotherUserWhereAllMayWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes links of others";
  constexpr uid_t other = 54321;
  write_text("target", "old");
  std::filesystem::create_directory("all");
  ASSERT_EQ(symlink("../target", "all/link"), 0);
  ASSERT_EQ(chmod("all", 01777), 0);
  EXPECT_NO_THROW(AtomicFile("all/link", true));
  ASSERT_EQ(lchown("all/link", other, other), 0);
  EXPECT_EQ(refusal("all/link", true),
            "cannot write 'all/link': it is a symbolic link of another user in a directory that is "
            "open to all | choose another name");
  EXPECT_EQ(read_text("target"), "old");
  ASSERT_EQ(chmod("all", 0755), 0);
  EXPECT_NO_THROW(AtomicFile("all/link", true));
  ASSERT_EQ(chmod("all", 01777), 0);
  ASSERT_EQ(chown("all", other, other), 0);
  EXPECT_NO_THROW(AtomicFile("all/link", true));
}

TEST_F(AtomicFileTest, RemovesStaleTemporariesOfTheSameOutputOnly) {
  write_text(".o.h5.qrtool-123-abc.tmp", "stale");
  write_text(".p.h5.qrtool-123-abc.tmp", "of another output");
  write_text(".o.h5.qrtool-123-abc", "no temporary");
  write_text(".o.h5.qrtool-124-abc.tmp", "alive");
  const int alive = open(".o.h5.qrtool-124-abc.tmp", O_RDWR);
  ASSERT_EQ(flock(alive, LOCK_EX), 0);
  { AtomicFile file("o.h5", false); }
  EXPECT_EQ(names(), (Names{".o.h5.qrtool-123-abc", ".o.h5.qrtool-124-abc.tmp",
                            ".p.h5.qrtool-123-abc.tmp"}));
  close(alive);
}

TEST_F(AtomicFileTest, TwoOfOneProcessDoNotDisturbEachOther) {
  AtomicFile first("o.h5", false);
  AtomicFile second("o.h5", false);
  put(first, "first");
  put(second, "second");
  first.commit();
  EXPECT_EQ(error_of<OutputError>([&] { second.commit(); }),
            "'o.h5' was created meanwhile | use --force to replace it");
  EXPECT_EQ(read_text("o.h5"), "first");
}

TEST_F(AtomicFileTest, TheReplacedFileGivesModeAndOwner) {
  for (const mode_t mode : {0600, 0644, 0660, 0400}) {
    write_text("o.h5", "old");
    ASSERT_EQ(chmod("o.h5", mode), 0);
    if (geteuid() == 0) {
      ASSERT_EQ(chown("o.h5", 1234, 4321), 0);
    }
    const struct stat old = status_of("o.h5");
    AtomicFile("o.h5", true).commit();
    EXPECT_EQ(status_of("o.h5").st_mode & 0777, mode);
    EXPECT_EQ(status_of("o.h5").st_uid, old.st_uid);
    EXPECT_EQ(status_of("o.h5").st_gid, old.st_gid);
    std::filesystem::remove("o.h5");
  }
}

TEST_F(AtomicFileTest, ModeFollowsTheMask) {
  for (const mode_t mask : {022, 077, 0777, 0}) {
    const mode_t before = umask(mask);
    {
      AtomicFile file("o.h5", false);
      EXPECT_EQ(status_of(file.temporary_path()).st_mode & 0777, 0600u);
      file.commit();
    }
    umask(before);
    EXPECT_EQ(status_of("o.h5").st_mode & 0777, 0666u & ~mask);
    std::filesystem::remove("o.h5");
  }
}

TEST_F(AtomicFileTest, ReservedSpaceIsGivenBack) {
  constexpr std::uint64_t reserved = 32 << 20;
  AtomicFile file("o.h5", false);
  file.reserve(reserved);
  const auto during = status_of(file.temporary_path());
  EXPECT_EQ(during.st_size, 0);
  put(file, std::string(10000, 'x'));
  file.commit();
  const auto after = status_of("o.h5");
  EXPECT_EQ(after.st_size, 10000);
  EXPECT_LT(static_cast<std::uint64_t>(after.st_blocks) * 512, reserved / 16);
}

TEST_F(AtomicFileTest, TooMuchSpace) {
  AtomicFile file("o.h5", false);
  const std::string error = error_of<OutputError>([&] { file.reserve(std::uint64_t{1} << 60); });
  EXPECT_EQ(error.rfind("cannot write 'o.h5': 1.0 EiB needed, ", 0), 0u) << error;
  EXPECT_NE(error.find(" free on /"), std::string::npos) << error;
}

TEST_F(AtomicFileTest, FileSizeLimit) {
  AtomicFile file("o.h5", false);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const std::string error = error_of<OutputError>([&] { file.reserve(2 << 20); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(error,
            "cannot write 'o.h5': 2.0 MiB needed, the file size limit is 1.0 MiB | raise it with "
            "ulimit -f");
}

/// Starts a child that calls before(), then remove_temporary_files() twice, and ends, since a
/// process must end after that call. Returns the two answers.
template <typename Before>
std::vector<Removed> remove_in_child(const Before& before) {
  const pid_t child = fork();
  if (child == 0) {
    before();
    const int first = static_cast<int>(remove_temporary_files());
    _exit(first * 4 + static_cast<int>(remove_temporary_files()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  return {static_cast<Removed>(WEXITSTATUS(status) / 4),
          static_cast<Removed>(WEXITSTATUS(status) % 4)};
}

TEST_F(AtomicFileTest, SignalHandlerRemovesWhatIsAlive) {
  AtomicFile first("a.h5", false);
  AtomicFile second("b.h5", false);
  AtomicFile third("c.h5", false);
  third.commit();
  EXPECT_EQ(remove_in_child([] {}), (std::vector{Removed::some, Removed::gone}));
  EXPECT_EQ(names(), Names{"c.h5"});
}

TEST_F(AtomicFileTest, NothingAppearsAfterTheRemoval) {
  // A driver may crash on its own thread at the moment in which the output is created.
  for (int run = 0; run < 40; ++run) {
    remove_in_child([run] {
      std::thread([] {
        for (;;) AtomicFile("o.h5", false);
      }).detach();
      std::this_thread::sleep_for(std::chrono::microseconds(500 + 137 * run));
    });
    EXPECT_TRUE(names().empty()) << run;
    for (const std::string& name : names()) std::filesystem::remove(name);
  }
}

TEST_F(AtomicFileTest, AdoptedFilesOfAKilledProcessAreRemoved) {
  int to_parent[2];
  ASSERT_EQ(pipe(to_parent), 0);
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file("o.h5", false);
    const std::string path = live_temporary_files().front();
    if (write(to_parent[1], path.data(), path.size()) < 0) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::string path(4096, ' ');
  path.resize(
      static_cast<std::size_t>(std::max<ssize_t>(read(to_parent[0], path.data(), path.size()), 0)));
  EXPECT_EQ(names().size(), 1u);
  EXPECT_TRUE(live_temporary_files().empty());
  const auto adopt = [&] { adopt_temporary_file(path); };
  EXPECT_EQ(remove_in_child(adopt), (std::vector{Removed::some, Removed::gone}));
  EXPECT_TRUE(names().empty());
}

TEST_F(AtomicFileTest, KilledAtARandomTime) {
  write_text("o.h5", std::string(1000, 'o'));
  for (int run = 0; run < 40; ++run) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) {
        AtomicFile file("o.h5", true);
        const std::string text(1000, 'n');
        if (write(file.descriptor(), text.data(), 500) != 500) _exit(1);
        if (write(file.descriptor(), text.data(), 500) != 500) _exit(1);
        file.commit();
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 137 * run));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string bytes = read_text("o.h5");
    EXPECT_TRUE(bytes == std::string(1000, 'o') || bytes == std::string(1000, 'n'));
    EXPECT_LE(names().size(), 2u);
  }
  { AtomicFile file("o.h5", true); }
  EXPECT_EQ(names(), Names{"o.h5"});
}

TEST_F(AtomicFileTest, OneOfManyRacingRunsWins) {
  for (int round = 0; round < 20; ++round) {
    std::filesystem::remove("o.h5");
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        try {
          AtomicFile file("o.h5", false);
          const std::string text(1000, static_cast<char>('0' + i));
          if (write(file.descriptor(), text.data(), text.size()) != 1000) _exit(1);
          file.commit();
          _exit(0);
        } catch (const OutputError&) {
          _exit(5);
        }
      }
      children.push_back(child);
    }
    int winners = 0;
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status));
      if (WEXITSTATUS(status) == 0) ++winners;
      EXPECT_NE(WEXITSTATUS(status), 1);
    }
    EXPECT_EQ(winners, 1);
    const std::string bytes = read_text("o.h5");
    EXPECT_EQ(bytes, std::string(1000, bytes.at(0)));
    EXPECT_EQ(names(), Names{"o.h5"});
  }
}

}  // namespace
}  // namespace qrtool::atomic_file_test
