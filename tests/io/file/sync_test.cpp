// SPDX-License-Identifier: Apache-2.0
// sync_test.cpp: an output is on the disk when commit() returns, its directory too; large outputs
// are brought there while they are written. The system's calls are replaced
// below by ones that record what they are asked.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "io/file/atomic_file.hpp"
#include "io/file/file_set.hpp"
#include "io/open/input.hpp"
#include "io/open/output.hpp"
#include "io/write/writer.hpp"
#include "tests/io/reading.hpp"

namespace {

struct Record {
  std::mutex mutex;
  std::vector<std::string> calls;     // "fsync file", "fsync directory", "rename"
  std::uint64_t begun_bytes = 0;      // that sync_file_range was asked to write
  bool holds_threads = false;         // whether reading waits for a second thread
  std::set<std::thread::id> threads;  // that have read at a position
  std::condition_variable changed;

  void add(const std::string& call) {
    const std::lock_guard lock(mutex);
    calls.push_back(call);
  }
  /// Notes the calling thread. The first one waits until another comes, so that a second thread is
  /// seen whenever there is one.
  void add_thread() {
    std::unique_lock lock(mutex);
    if (!holds_threads) return;
    threads.insert(std::this_thread::get_id());
    changed.notify_all();
    const bool is_joined =
        changed.wait_for(lock, std::chrono::seconds(5), [&] { return threads.size() > 1; });
    if (!is_joined) holds_threads = false;
  }
};
Record record;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int fsync(int descriptor) {
  struct stat info {};
  fstat(descriptor, &info);
  record.add(S_ISDIR(info.st_mode) ? "fsync directory" : "fsync file");
  return next<int(int)>("fsync")(descriptor);
}
/// A reader as HDF5 takes a shared lock. It must get it from the moment in which the file has its
/// name.
int note_rename(int result, const char* to) {
  record.add("rename");
  const int reader = open(to, O_RDONLY | O_CLOEXEC);
  if (reader >= 0 && flock(reader, LOCK_SH | LOCK_NB) != 0) record.add("a reader is refused");
  if (reader >= 0) close(reader);
  return result;
}
extern "C" int rename(const char* from, const char* to) noexcept {
  return note_rename(next<int(const char*, const char*)>("rename")(from, to), to);
}
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                         unsigned flags) noexcept {
  const auto call = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return note_rename(call(from_folder, from, to_folder, to, flags), to);
}
extern "C" int sync_file_range(int descriptor, off_t start, off_t bytes, unsigned flags) {
  {
    const std::lock_guard lock(record.mutex);
    if ((flags & SYNC_FILE_RANGE_WRITE) != 0)
      record.begun_bytes += static_cast<std::uint64_t>(bytes);
  }
  return next<int(int, off_t, off_t, unsigned)>("sync_file_range")(descriptor, start, bytes, flags);
}
extern "C" ssize_t preadv(int descriptor, const iovec* parts, int count, off_t position) {
  record.add_thread();
  return next<ssize_t(int, const iovec*, int, off_t)>("preadv")(descriptor, parts, count, position);
}

namespace qrtool::sync_test {
namespace {

using Calls = std::vector<std::string>;
const Calls file_then_name_then_directory{"fsync file", "rename", "fsync directory"};

class SyncTest : public FileTest {
 protected:
  SyncTest() {
    record.calls.clear();
    record.begun_bytes = 0;
    record.threads.clear();
    record.holds_threads = false;
  }
};

/// Writes o.h5 with 64 matrices of 256 x 256 float64, 32 MiB in 64 chunks.
void write_large_output() {
  constexpr index_t count = 64, n = 256;
  OutputSpec spec;
  spec.threads = 2;
  spec.path = "o.h5";
  spec.leading = {count};
  spec.datasets = {{"A", ElementType::float64, n, n}};
  const auto writer = create_output(spec);
  const std::vector<double> values(count * n * n, 1.5);
  writer->write("A", 0, packed(values.data(), count, n, n));
  writer->commit();
}

TEST_F(SyncTest, ACommitSyncsTheFileAndAfterTheRenameItsDirectory) {
  for (const bool force : {false, true}) {
    record.calls.clear();
    AtomicFile file("a.h5", force);
    file.commit();
    EXPECT_EQ(record.calls, file_then_name_then_directory) << force;
  }
  std::filesystem::create_directory("sub");
  record.calls.clear();
  AtomicFile file("sub/a.h5", false);
  file.commit();
  EXPECT_EQ(record.calls, file_then_name_then_directory);
}

TEST_F(SyncTest, ASetIsOnTheDiskBeforeItsFirstFileGetsAName) {
  write_text("b.csv", "old");
  AtomicFile first("a.csv", true), second("b.csv", true);
  FileSet files;
  files.add(first);
  files.add(second);
  files.commit();
  EXPECT_EQ(record.calls,
            (Calls{"fsync file", "fsync file", "rename", "rename", "fsync directory"}));
}

TEST_F(SyncTest, EveryFormatIsSynced) {
  OutputSpec spec;
  spec.path = "o.csv";
  spec.datasets = {{"A", ElementType::float64, 1, 1}};
  const double one = 1;
  auto writer = create_output(spec);
  writer->write("A", 0, packed(&one, 1, 1, 1));
  writer->commit();
  EXPECT_EQ(record.calls, file_then_name_then_directory);
  record.calls.clear();
  spec.path = "o.h5";
  writer = create_output(spec);
  writer->write("A", 0, packed(&one, 1, 1, 1));
  writer->commit();
  // HDF5 may sync its file, too.
  ASSERT_GE(record.calls.size(), 3u);
  EXPECT_EQ(Calls(record.calls.end() - 3, record.calls.end()), file_then_name_then_directory);
}

TEST_F(SyncTest, LargeOutputsAreOnTheirWayToTheDiskBeforeTheCommit) {
  write_large_output();
  EXPECT_GE(record.begun_bytes, std::uint64_t{31} << 20);
}

TEST_F(SyncTest, SeveralThreadsReadOneFile) {
  write_large_output();
  const auto reader = open_input({.path = "o.h5", .dataset = "", .threads = 2});
  record.holds_threads = true;  // not before: one thread looks at the beginning of the file
  EXPECT_EQ(read_all<double>(*reader), std::vector<double>(64 * 256 * 256, 1.5));
  EXPECT_GT(record.threads.size(), 1u);
}

}  // namespace
}  // namespace qrtool::sync_test
