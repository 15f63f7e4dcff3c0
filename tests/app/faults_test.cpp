// SPDX-License-Identifier: Apache-2.0
// faults_test.cpp: kills the tool, fills disks and makes calls fail. Afterwards the output's name
// must have its old content or a complete result, and never anything else.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "tests/app/faults_fixture.hpp"
#include "tests/io/hdf5/fixture.hpp"

namespace qrtool::test::faults_test {
namespace {

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Waits until the tool handles the signal. Before that, the system would end it without a message.
void wait_until_caught(int signal, const RunningTool& tool) {
  const std::string status = "/proc/" + std::to_string(tool.pid()) + "/status", key = "SigCgt:";
  for (int i = 0; i < 10000; ++i) {
    const std::string text = read_text(status);
    const std::size_t at = text.find(key);
    if (at == std::string::npos) return;
    if (std::stoull(text.substr(at + key.size()), nullptr, 16) >> (signal - 1) & 1) return;
    sleep_for(0.001);
  }
}

double seconds_of_a_run(const Strings& arguments) {
  const auto start = std::chrono::steady_clock::now();
  run_tool(arguments);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(Faults, KilledAtAnyMomentLeavesOldOrCompleteAndTheNextRunCleansUp) {
  make_input(1500);
  const double usual = seconds_of_a_run({"factor", a_, q_, "-q"});
  std::filesystem::remove(q_);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    RunningTool tool({"factor", a_, q_, "-q"});
    sleep_for(std::uniform_real_distribution<>(0, 1.1 * usual)(random));
    tool.send(SIGKILL);
    tool.wait();
    Strings names = dir_.names();
    std::erase_if(names, [](const std::string& name) { return name.ends_with(".tmp"); });
    EXPECT_GE(names.size() + 1, dir_.names().size()) << "more than one temporary file";
    if (!std::filesystem::exists(q_)) {
      EXPECT_EQ(run_tool({"factor", a_, q_, "-q"}).exit_code, 0);
    }
    expect_nothing_or_all("after kill -9 and a normal run");
  }
}

TEST_F(Faults, KilledWithForceKeepsTheOldFile) {
  make_input(1500);
  for (int i = 0; i < 5; ++i) {
    write_text(q_, "precious");
    RunningTool tool({"factor", a_, q_, "-qf"});
    sleep_for(0.005 + 0.01 * i);
    tool.send(SIGKILL);
    const ToolResult result = tool.wait();
    const std::string after = read_text(q_);
    EXPECT_TRUE(after == "precious" || after == read_text(expected_));
  }
}

TEST_F(Faults, InterruptsLeaveNothingAndSaySo) {
  make_input(1500);
  const double usual = seconds_of_a_run({"factor", a_, q_, "-q"});
  std::filesystem::remove(q_);
  std::mt19937 random(2);
  int interrupted = 0;
  for (int i = 0; i < 30 || (interrupted < 6 && i < 300); ++i) {
    const int signal = std::array{SIGINT, SIGTERM, SIGHUP}[static_cast<std::size_t>(i % 3)];
    RunningTool tool({"factor", a_, q_, "-q"});
    wait_until_caught(signal, tool);
    sleep_for(std::uniform_real_distribution<>(0, 0.9 * usual)(random));
    tool.send(signal);
    const ToolResult result = tool.wait();
    if (result.exit_code == 0) {
      expect_nothing_or_all("a run that was done before the signal came");
      continue;
    }
    EXPECT_EQ(result.signal, signal) << "the shell sees 128 + n";
    EXPECT_TRUE(result.err.starts_with("qrtool: interrupted")) << result.err;
    if (result.err == "qrtool: interrupted; nothing written\n") {
      EXPECT_FALSE(std::filesystem::exists(q_));
      ++interrupted;
    }
    expect_nothing_or_all("signal " + std::to_string(signal));
  }
  EXPECT_GE(interrupted, 6) << "the signals came too late to show anything";
}

TEST_F(Faults, AnIgnoredSignalStaysIgnored) {
  make_input(1000);
  RunningTool tool({"factor", a_, q_, "-q"}, {.in_child = [] { signal(SIGHUP, SIG_IGN); }});
  sleep_for(0.02);
  tool.send(SIGHUP);
  EXPECT_EQ(tool.wait().exit_code, 0) << "as under nohup";
}

struct FailingCall {
  const char* name;
  int error;
};

/// Makes an environment in which the Nth of these calls fails.
ToolOptions failing(const FailingCall& call, int nth, bool sticky, const std::string& log) {
  return {.environment = {{"LD_PRELOAD", QRTOOL_FAIL_NTH},
                          {"ASAN_OPTIONS", "verify_asan_link_order=0"},
                          {"QRTOOL_FAIL_CALL", call.name},
                          {"QRTOOL_FAIL_NTH", std::to_string(nth)},
                          {"QRTOOL_FAIL_ERRNO", std::to_string(call.error)},
                          {"QRTOOL_FAIL_STICKY", sticky ? "1" : "0"},
                          {"QRTOOL_FAIL_LOG", log}}};
}

/// Lets call number N fail, for N = 1, 2, ... until a run makes fewer calls. Every run must exit
/// with 0, or with 5 and a message. Then `check(result, when)` looks at the files.
template <class Check>
void fail_every_call(const std::vector<FailingCall>& calls, const Strings& arguments,
                     const std::string& log, Check check) {
  for (const FailingCall& call : calls) {
    if (has_thread_sanitizer && std::string_view(call.name) == "ftruncate") continue;
    for (const bool sticky : {false, true}) {
      for (int nth = 1; nth < 500; ++nth) {
        const std::string when = std::string(call.name) + " " + std::to_string(nth) + " errno " +
                                 std::to_string(call.error) + (sticky ? " sticky" : " once");
        const ToolResult result = run_tool(arguments, failing(call, nth, sticky, log));
        EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 5)
            << when << ": exit " << result.exit_code << " signal " << result.signal << " "
            << result.err;
        EXPECT_EQ(result.exit_code == 5, result.err.starts_with("qrtool: ")) << when << result.err;
        const bool failed = std::filesystem::remove(log);
        check(result, when);
        if (failed) continue;
        EXPECT_EQ(result.exit_code, 0) << when;
        EXPECT_GT(nth, 1) << call.name << " is never called";
        break;
      }
    }
  }
}

/// The library of OpenMP ends the process by itself, with the code of a matrix above its bar.
TEST_F(Faults, AThreadThatCannotStartIsExit6OrACompleteResult) {
  // The threads share one large matrix by OpenMP.
  write_matrices<float>(a_, {1}, make_matrices<float>("gauss", 1, 600, 500).view());
  const Strings arguments{"factor", a_, q_, "-qf", "--backend", "cpu", "--threads", "4"};
  ASSERT_EQ(run_tool(arguments).exit_code, 0);
  std::filesystem::rename(q_, expected_);
  int ended = 0;
  for (int nth = 1; nth < 8; ++nth) {
    const std::string when = "from thread " + std::to_string(nth) + " on";
    const ToolResult result =
        run_tool(arguments, failing({"pthread_create", EAGAIN}, nth, true, dir_ / "log"));
    std::filesystem::remove(dir_ / "log");
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 6) << when << result.err;
    EXPECT_EQ(result.exit_code == 6, result.err.find("hint: raise ulimit") != std::string::npos)
        << when << result.err;
    ended += result.err.find("a library ended the process") != std::string::npos;
    expect_nothing_or_all(when);
  }
  EXPECT_GT(ended, 0) << "OpenMP has started all its threads";
}

TEST_F(Faults, EveryFailingCallGivesExit5OrACompleteResult) {
  make_input(40);
  const std::vector<FailingCall> calls{
      {"pwrite", ENOSPC}, {"pwrite", EIO},       {"ftruncate", EIO},
      {"fsync", EIO},     {"fsync", ENOSPC},     {"rename", EIO},
      {"rename", ENOSPC}, {"fallocate", ENOSPC}, {"fallocate", EIO}};
  fail_every_call(calls, {"factor", a_, q_, "-q"}, dir_ / "log",
                  [&](const ToolResult& result, const std::string& when) {
                    const bool exists = std::filesystem::exists(q_);
                    // Where only the directory could not be synced, the file is complete.
                    if (result.exit_code == 0) {
                      EXPECT_TRUE(exists) << when;
                    }
                    if (!when.starts_with("fsync")) {
                      EXPECT_EQ(exists, result.exit_code == 0) << when;
                    }
                    expect_nothing_or_all(when);
                  });
}

TEST_F(Faults, EveryFailingCallOfATextOutputToo) {
  write_text(dir_ / "a.csv", "1,2\n3,4\n5,6\n");
  const Strings all{"a.csv", "out.Q.csv", "out.R.csv", "out.report.csv"};
  const std::vector<FailingCall> calls{{"write", ENOSPC}, {"fsync", EIO}, {"rename", EIO}};
  fail_every_call(calls, {"factor", dir_ / "a.csv", dir_ / "out.csv", "-q"}, dir_ / "log",
                  [&](const ToolResult& result, const std::string& when) {
                    const Strings names = dir_.names();
                    if (result.exit_code == 0) {
                      EXPECT_EQ(names, all) << when;
                    }
                    if (!when.starts_with("fsync") && result.exit_code == 5) {
                      EXPECT_EQ(names, Strings{"a.csv"}) << when;
                    }
                    for (const std::string& name : names)
                      if (name != "a.csv") std::filesystem::remove(dir_ / name);
                  });
}

/// With --force the old set stays whole. Only where the names cannot be given back either is there
/// a mix, and then verify notices it.
TEST_F(Faults, EveryFailingCallLeavesTheOldTextOutputWhole) {
  const std::string a = dir_ / "a.csv", out = dir_ / "out.csv";
  const auto contents = [&] {
    std::vector<std::string> all;
    for (const std::string& name : dir_.names())
      if (name != "a.csv") all.push_back(name + ":" + read_text(dir_ / name));
    return all;
  };
  write_text(a, "1,2\n3,4\n5,6\n");
  ASSERT_EQ(run_tool({"factor", a, out, "-q"}).exit_code, 0);
  const std::vector<std::string> fresh = contents();
  write_text(a, "1,2\n3,4\n5,7\n");
  ASSERT_EQ(run_tool({"factor", a, out, "-qf", "--mode", "raw"}).exit_code, 0);
  const std::vector<std::string> old = contents();
  const auto restore = [&] {
    for (const std::string& name : dir_.names())
      if (name != "a.csv" && name != "r.csv") std::filesystem::remove(dir_ / name);
    for (const std::string& file : old)
      write_text(dir_ / file.substr(0, file.find(':')), file.substr(file.find(':') + 1));
  };
  write_text(a, "1,2\n3,4\n5,6\n");
  const std::vector<FailingCall> calls{{"write", ENOSPC}, {"fsync", EIO}, {"rename", EIO}};
  fail_every_call(calls, {"factor", a, out, "-qf"}, dir_ / "log",
                  [&](const ToolResult& result, const std::string& when) {
                    const std::vector<std::string> after = contents();
                    const bool has_mix = when.starts_with("rename") && when.ends_with("sticky");
                    if (result.exit_code == 0) {
                      EXPECT_EQ(after, fresh) << when;
                    } else if (after != old && after != fresh) {
                      EXPECT_TRUE(has_mix) << when;
                      EXPECT_EQ(run_tool({"verify", a, out}).exit_code, 3) << when;
                    }
                    restore();
                  });
}

/// Between two renames there are new files beside old ones. They never pass as one result.
TEST_F(Faults, KilledBetweenTwoRenamesIsNoticedByVerify) {
  const std::string a = dir_ / "a.csv", b = dir_ / "b.csv", out = dir_ / "out.csv";
  write_text(a, "1,2\n3,4\n5,6\n");
  write_text(b, "1,2\n3,4\n5,7\n");
  const auto verdicts = [&] {
    return std::pair(run_tool({"verify", a, out}).exit_code,
                     run_tool({"verify", b, out}).exit_code);
  };
  for (const char* mode : {"raw", "reduced", "r"}) {
    int mixed = 0;
    for (int nth = 1;; ++nth) {
      for (const std::string& name : dir_.names())
        if (name.find("out.") != std::string::npos) std::filesystem::remove(dir_ / name);
      ASSERT_EQ(run_tool({"factor", b, out, "-q", "--mode", mode}).exit_code, 0);
      ToolOptions options = failing({"rename", 0}, nth, false, dir_ / "log");
      options.environment["QRTOOL_FAIL_KILL"] = "1";
      const ToolResult result = run_tool({"factor", a, out, "-qf"}, options);
      const auto [of_new, of_old] = verdicts();
      if (result.exit_code == 0) break;
      ASSERT_EQ(result.signal, SIGKILL);
      const bool is_old = of_old == 0 && of_new == 1, is_new = of_new == 0 && of_old == 1;
      const bool is_mix = of_new == 3 && of_old == 3;
      EXPECT_TRUE(is_old || is_new || is_mix) << mode << nth << ": " << of_new << of_old;
      EXPECT_EQ(nth == 1, is_old) << "before the first rename all is old";
      if (is_mix) ++mixed;
      ASSERT_EQ(run_tool({"factor", a, out, "-qf"}).exit_code, 0);
      EXPECT_EQ(verdicts(), std::pair(0, 1));
      for (const std::string& name : dir_.names()) EXPECT_FALSE(name.ends_with(".tmp")) << name;
    }
    EXPECT_GE(mixed, 2) << mode;
  }
}

TEST_F(Faults, AReportThatFailsLeavesNothing) {
  make_input(4);
  const std::vector<FailingCall> calls{{"write", ENOSPC}, {"fsync", EIO}, {"rename", EIO}};
  const std::string report = dir_ / "r.json";
  fail_every_call(calls, {"factor", a_, q_, "-q", "--report", report}, dir_ / "log",
                  [&](const ToolResult& result, const std::string& when) {
                    const bool exists = std::filesystem::remove(report);
                    EXPECT_EQ(std::filesystem::exists(q_), exists) << when;
                    if (exists && result.exit_code != 0) {
                      EXPECT_NE(result.err.find("is complete, but its directory cannot be synced"),
                                std::string::npos)
                          << when << result.err;
                    }
                    expect_nothing_or_all(when);
                  });
}

TEST_F(Faults, AStatusThatCannotBeReadLeavesNoTemporaryFile) {
  write_text(dir_ / "a.csv", "1,2\n3,4\n5,6\n");
  for (int nth = 1; nth < 200; ++nth) {
    const ToolResult result = run_tool({"factor", dir_ / "a.csv", dir_ / "out.csv", "-qf"},
                                       failing({"fstat", EIO}, nth, false, dir_ / "log"));
    EXPECT_EQ(result.signal, 0) << nth;
    for (const std::string& name : dir_.names()) EXPECT_FALSE(name.ends_with(".tmp")) << nth;
    if (!std::filesystem::remove(dir_ / "log")) return;
  }
  ADD_FAILURE() << "there is no end to the calls";
}

TEST_F(Faults, AWriteWithoutMemoryIsALimit) {
  make_input(40);
  for (const char* name : {"pwrite", "ftruncate", "fsync"}) {
    const ToolResult result =
        run_tool({"factor", a_, q_, "-q"}, failing({name, ENOMEM}, 1, false, dir_ / "log"));
    EXPECT_EQ(result.exit_code, 6) << name << result.err;
    EXPECT_TRUE(result.err.starts_with("qrtool: ")) << result.err;
    EXPECT_NE(result.err.find("out of memory"), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(q_)) << name;
  }
}

// The last allocations of a run are those of main and of the constructors of global objects.
TEST_F(Faults, AllocationsThatFailAroundTheBeginningOfMain) {
  if (has_thread_sanitizer) GTEST_SKIP() << "it has no memory either";
  const auto fails = [&](int nth, ToolResult& result) {
    result = run_tool({"--version"}, failing({"malloc", ENOMEM}, nth, false, dir_ / "log"));
    return std::filesystem::remove(dir_ / "log");
  };
  ToolResult result;
  int made = 0;
  for (int step = 1 << 16; step > 0; step /= 2) {
    if (fails(made + step, result)) made += step;
  }
  ASSERT_GT(made, 100);
  for (int nth = made - 100; nth <= made; ++nth) {
    fails(nth, result);
    EXPECT_EQ(result.signal, 0) << nth << result.err;
    EXPECT_EQ(result.err.find("terminate called"), std::string::npos) << nth << result.err;
  }
}

TEST_F(Faults, FullDisk) {
  make_input(2000);
  const std::string disk = dir_ / "disk";
  std::filesystem::create_directory(disk);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "mounting needs more rights";
  const ToolResult result = run_tool({"factor", a_, disk + "/q.h5"});
  const bool is_empty = std::filesystem::is_empty(disk);
  umount(disk.c_str());
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_NE(result.err.find("cannot write"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(is_empty);
}

TEST_F(Faults, FileSizeLimit) {
  if (has_thread_sanitizer) GTEST_SKIP() << "its OpenMP cannot make shared memory";
  make_input(2000);
  for (const rlim_t limit : {rlim_t{0}, rlim_t{4096}, rlim_t{1} << 20, rlim_t{10} << 20}) {
    const ToolResult result = run_tool({"factor", a_, q_}, {.in_child = [limit] {
                                         const rlimit both{limit, limit};
                                         setrlimit(RLIMIT_FSIZE, &both);
                                       }});
    EXPECT_EQ(result.exit_code, 5) << limit << result.err << result.signal;
    expect_nothing_or_all("file size limit " + std::to_string(limit));
  }
}

TEST_F(Faults, PlacesThatCannotBeWrittenAreFoundBeforeAnyWork) {
  make_input(4);
  const std::pair<std::string, const char*> places[] = {
      {dir_ / "none/q.h5", "its directory does not exist"},
      {dir_.path(), "it is a directory"},
      {"/proc/q.h5", ""},
      {"/dev/null", "it is a device or socket, not a file"},
      {dir_ / std::string(300, 'x'), "File name too long"}};
  for (const auto& [place, reason] : places) {
    const ToolResult result = run_tool({"factor", a_, place, "--force"});
    EXPECT_EQ(result.exit_code, 5) << place;
    EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(dir_.names(), before_);
}

TEST_F(Faults, UnreadableInputsAreNamed) {
  mkfifo((dir_ / "fifo.h5").c_str(), 0600);
  write_text(dir_ / "empty.h5", "");
  write_text(dir_ / "text.h5", "1,2\n3,4\n");
  write_text(dir_ / "ragged.csv", "1,2\n3\n");
  for (const char* name : {"none.h5", "fifo.h5", "empty.h5", "text.h5", "ragged.csv", "none.csv"}) {
    const ToolResult result = run_tool({"factor", dir_ / name, q_}, {.timeout_seconds = 5});
    EXPECT_EQ(result.exit_code, 3) << name << result.err;
    EXPECT_NE(result.err.find(name), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(q_));
  }
  EXPECT_EQ(run_tool({"factor", "/dev/zero", q_}, {.timeout_seconds = 5}).exit_code, 3);
  EXPECT_EQ(run_tool({"factor", dir_.path(), q_}).exit_code, 3);
}

TEST_F(Faults, ADamagedInputLeavesNothing) {
  make_input(200);
  std::string bytes = read_text(a_);
  write_text(dir_ / "short.h5", bytes.substr(0, bytes.size() / 2));
  const ToolResult result = run_tool({"factor", dir_ / "short.h5", q_});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_FALSE(std::filesystem::exists(q_));
}

/// Makes an environment in which this call of the HDF5 library crashes.
ToolOptions crashing(const char* call, int signal_number) {
  return {.environment = {{"LD_PRELOAD", QRTOOL_CRASH_HDF5},
                          {"ASAN_OPTIONS", "verify_asan_link_order=0"},
                          {"QRTOOL_CRASH_CALL", call},
                          {"QRTOOL_CRASH_SIGNAL", std::to_string(signal_number)}}};
}

TEST_F(Faults, ACrashOfTheHdf5LibraryIsAnErrorOfItsInput) {
  make_input(20);
  for (const int signal_number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    const ToolResult result = run_tool({"factor", a_, q_}, crashing("H5Oopen", signal_number));
    EXPECT_EQ(result.exit_code, 3) << result.signal << result.err;
    EXPECT_EQ(result.err,
              "qrtool: " + a_ + ": damaged HDF5 file (the HDF5 library crashed on it)\n");
  }
  // The library reads big-endian numbers, after the output was created.
  const std::string big_endian = dir_ / "expected.h5";
  write_numbers(big_endian, "A", H5T_IEEE_F32BE, {5, 8, 8});
  const ToolResult late = run_tool({"factor", big_endian, q_}, crashing("H5Dread", SIGSEGV));
  EXPECT_EQ(late.exit_code, 3) << late.err;
  EXPECT_EQ(dir_.names(), before_);
}

TEST_F(Faults, AnHdf5LibraryThatDoesNotEndIsAnErrorOfItsInput) {
  make_input(20);
  const ToolResult result = run_tool({"factor", a_, q_}, crashing("H5Oopen", 0));
  EXPECT_EQ(result.exit_code, 3) << result.signal << result.err;
  EXPECT_EQ(
      result.err,
      "qrtool: " + a_ + ": damaged HDF5 file (the HDF5 library does not come to an end with it)\n");
  EXPECT_EQ(dir_.names(), before_);
}

TEST_F(Faults, ACrashOfTheHdf5LibraryNamesTheFileThatItReads) {
  const auto a = make_matrices<float>("gauss", 3, 8, 8);
  write_matrices<float>(a_, {3}, a.view());
  write_factors<float>(expected_, {3}, a.view(), a.view());
  std::filesystem::remove(a_);
  write_text(dir_ / "a.csv", "1,2\n3,4\n");
  const ToolResult result =
      run_tool({"verify", dir_ / "a.csv", expected_}, crashing("H5Oopen", SIGSEGV));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("expected.h5: damaged"), std::string::npos) << result.err;
}

TEST_F(Faults, AFactorThatCannotBeLookedUpIsNotAbsent) {
  const auto a = make_matrices<float>("identity", 3, 8, 8);
  write_matrices<float>(a_, {3}, a.view());
  write_factors<float>(expected_, {3}, a.view(), a.view());
  EXPECT_EQ(run_tool({"verify", a_, expected_}).exit_code, 0);
  const ToolResult result = run_tool({"verify", a_, expected_}, crashing("H5Lexists", 0));
  EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
}

TEST_F(Faults, ACrashOutsideOfAnInputLeavesNothingAndIsOurs) {
  make_input(20);
  const ToolResult result = run_tool({"factor", a_, q_}, crashing("H5Dwrite_chunk", SIGSEGV));
  EXPECT_EQ(result.signal, SIGSEGV) << result.exit_code;
  EXPECT_NE(result.err.find("internal error"), std::string::npos) << result.err;
  EXPECT_EQ(dir_.names(), before_);
}

TEST_F(Faults, AnInputThatIsWrittenMeanwhileIsRefused) {
  make_input(3000);
  RunningTool tool({"factor", a_, q_, "-q"});
  std::atomic<bool> is_done = false;
  std::jthread writer([&] {
    for (int i = 1; !is_done; ++i) {
      const timespec times[] = {{i, 0}, {i, 0}};
      utimensat(AT_FDCWD, a_.c_str(), times, 0);
      sleep_for(0.0005);
    }
  });
  const ToolResult result = tool.wait();
  is_done = true;
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("the file changed while it was being read"), std::string::npos);
  EXPECT_EQ(dir_.names(), before_);
}

TEST_F(Faults, TwoRunsForOneOutputLeaveOneCompleteFile) {
  make_input(500);
  for (int i = 0; i < 10; ++i) {
    RunningTool first({"factor", a_, q_, "-q"}), second({"factor", a_, q_, "-q"});
    const ToolResult one = first.wait(), two = second.wait();
    EXPECT_EQ(std::min(one.exit_code, two.exit_code), 0) << one.err << two.err;
    EXPECT_TRUE(std::max(one.exit_code, two.exit_code) == 5) << one.err << two.err;
    EXPECT_TRUE(std::filesystem::exists(q_));
    expect_nothing_or_all("two runs at once");
  }
}

}  // namespace
}  // namespace qrtool::test::faults_test
