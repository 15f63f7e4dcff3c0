// SPDX-License-Identifier: Apache-2.0
// surroundings_test.cpp: runs the tool with full or closed streams, locales, terminals, masks and
// little memory. They must change no result, and the tool must say what it cannot do.
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/app/faults_fixture.hpp"

namespace qrtool::test::surroundings_test {
namespace {

using Surroundings = Faults;

/// Redirects a stream of the child, as `2>/dev/full` or `>&-` do in sh.
std::function<void()> redirect(int descriptor, const char* path) {
  return [=] {
    close(descriptor);
    if (path != nullptr) dup2(open(path, O_WRONLY), descriptor);
  };
}

TEST_F(Surroundings, StandardOutputThatIsFullIsExit5AndTheResultStays) {
  make_input(4);
  const ToolOptions full{.in_child = redirect(STDOUT_FILENO, "/dev/full")};
  const ToolResult result = run_tool({"factor", a_, q_}, full);
  EXPECT_EQ(result.exit_code, 5);
  // A note on the order of square matrices comes first.
  EXPECT_TRUE(
      result.err.ends_with("qrtool: cannot write to standard output: No space left on device\n"))
      << result.err;
  EXPECT_TRUE(read_text(q_) == read_text(expected_));
  for (const Strings& arguments :
       std::vector<Strings>{{"--help"}, {"--version"}, {"verify", a_, expected_, "--json"}})
    EXPECT_EQ(run_tool(arguments, full).exit_code, 5) << arguments[0];
  EXPECT_EQ(run_tool({"factor", a_, q_, "-qf"}, full).exit_code, 0) << "nothing to print";
}

/// A closed stream is no place where a result may vanish. Files never get its number.
TEST_F(Surroundings, StandardStreamsThatAreClosedFailWhereTheyAreNeeded) {
  make_input(4);
  const ToolOptions closed{.in_child = redirect(STDOUT_FILENO, nullptr)};
  for (const Strings& arguments : std::vector<Strings>{{"devices"},
                                                       {"--version"},
                                                       {"verify", a_, expected_, "--order", "row"},
                                                       {"factor", a_, q_}}) {
    const ToolResult result = run_tool(arguments, closed);
    EXPECT_EQ(result.exit_code, 5) << arguments[0];
    EXPECT_TRUE(
        result.err.ends_with("qrtool: cannot write to standard output: Bad file descriptor\n"))
        << result.err;
  }
  EXPECT_TRUE(read_text(q_) == read_text(expected_));
  EXPECT_EQ(run_tool({"factor", a_, q_, "-qf"}, closed).exit_code, 0) << "nothing to print";
  EXPECT_EQ(
      run_tool({"factor", "-", q_, "-qf"}, {.in_child = redirect(STDIN_FILENO, nullptr)}).exit_code,
      3);
}

/// A thread that cannot start for want of address space is not blamed on the number of processes.
TEST_F(Surroundings, AThreadWithoutSpaceNamesTheLimit) {
  if (has_thread_sanitizer) GTEST_SKIP() << "the thread sanitizer takes terabytes";
  make_input(4000);
  int named = 0;
  for (rlim_t mebibytes = 40; mebibytes < 400; mebibytes += 10) {
    const ToolResult result =
        run_tool({"factor", a_, q_, "-qf", "--threads", "16"}, {.in_child = [mebibytes] {
                   const rlimit both{mebibytes << 20, mebibytes << 20};
                   setrlimit(RLIMIT_AS, &both);
                 }});
    EXPECT_EQ(result.err.find("ulimit -u"), std::string::npos) << mebibytes << result.err;
    if (result.err.find("the address space is limited to") != std::string::npos) ++named;
  }
  EXPECT_GT(named, 0) << "no limit let a thread fail";
}

TEST_F(Surroundings, AStackThatIsTooSmallIsNamed) {
  make_input(4);
  // With 16 KiB and an environment of 2 KiB the loader needs all of it in one of five runs.
  for (const rlim_t kibibytes : {24, 64, 128}) {
    const ToolResult result = run_tool({"factor", a_, q_, "-q"}, {.in_child = [kibibytes] {
                                         const rlimit both{kibibytes << 10, kibibytes << 10};
                                         setrlimit(RLIMIT_STACK, &both);
                                       }});
    EXPECT_EQ(result.exit_code, 6) << kibibytes << result.err;
    EXPECT_NE(result.err.find("hint: raise ulimit -s"), std::string::npos) << result.err;
  }
}

TEST_F(Surroundings, AReaderThatIsGoneIsSigpipe) {
  make_input(500);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const Strings arguments{"factor", a_, q_, "--progress", "always", "--memory", "5000KiB"};
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    const ToolResult result = run_tool(arguments, {.in_child = [&] { dup2(ends[1], descriptor); }});
    EXPECT_EQ(result.signal, SIGPIPE);
    EXPECT_EQ(std::filesystem::exists(q_), descriptor == STDOUT_FILENO)
        << "the progress line comes before the output is complete, the summary after it";
    expect_nothing_or_all("SIGPIPE");
  }
  close(ends[1]);
}

TEST_F(Surroundings, OddSurroundingsChangeNothing) {
  make_input(4);
  const std::string expected = read_text(expected_);
  const std::pair<const char*, ToolOptions> surroundings[] = {
      {"German", {.environment = {{"LC_ALL", "de_DE.UTF-8"}}}},
      {"no locale", {.environment = {{"LC_ALL", "xx_XX"}, {"LANG", std::nullopt}}}},
      {"dumb terminal", {.environment = {{"TERM", "dumb"}}}},
      {"no terminal", {.environment = {{"TERM", std::nullopt}}}},
      {"no home", {.environment = {{"HOME", std::nullopt}, {"TZ", std::nullopt}}}},
      {"home away", {.environment = {{"HOME", "/nonexistent"}, {"TMPDIR", "/nonexistent"}}}},
      {"no path", {.environment = {{"PATH", std::nullopt}}}},
      {"no stdin", {.in_child = redirect(STDIN_FILENO, nullptr)}},
      {"no stderr", {.in_child = redirect(STDERR_FILENO, nullptr)}},
      {"full stderr", {.in_child = redirect(STDERR_FILENO, "/dev/full")}},
      {"no streams",
       {.in_child =
            [] {
              for (const int descriptor : {0, 1, 2}) close(descriptor);
            }}},
      {"one thread", {.environment = {{"OMP_NUM_THREADS", "1"}}}},
      {"one core",
       {.in_child =
            [] {
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(0, &one);
              sched_setaffinity(0, sizeof one, &one);
            }}},
  };
  for (const auto& [name, options] : surroundings) {
    const ToolResult result = run_tool({"factor", a_, q_, "-q"}, options);
    EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
    EXPECT_TRUE(read_text(q_) == expected) << name;
    expect_nothing_or_all(name);
  }
}

TEST_F(Surroundings, MaskOfTheUserIsKept) {
  make_input(4);
  for (const mode_t mask : {0777, 0077, 0022}) {
    const ToolResult result = run_tool({"factor", a_, q_}, {.in_child = [mask] { umask(mask); }});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    struct stat info {};
    ASSERT_EQ(stat(q_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0666u & ~mask);
    std::filesystem::remove(q_);
  }
}

TEST_F(Surroundings, AddressSpaceThatIsTooSmallIsExit6) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer takes terabytes of address space";
#endif
  if (has_thread_sanitizer) GTEST_SKIP() << "the thread sanitizer takes terabytes, too";
  make_input(4);
  for (const rlim_t mebibytes : {60, 100, 200}) {
    const ToolResult result = run_tool({"factor", a_, q_}, {.in_child = [mebibytes] {
                                         const rlimit both{mebibytes << 20, mebibytes << 20};
                                         setrlimit(RLIMIT_AS, &both);
                                       }});
    if (result.exit_code == 127) continue;  // not even the libraries could be loaded
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 6)
        << mebibytes << ": " << result.exit_code << result.err << result.signal;
    expect_nothing_or_all("address space");
  }
}

/// Runs the tool with a terminal as standard error and returns what it printed there.
std::string terminal_output(const Strings& arguments, const char* term) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    setenv("TERM", term, 1);
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    std::vector<char*> argv{const_cast<char*>("qrtool")};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(QRTOOL_BINARY, argv.data());
    _exit(127);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << text;
  return text;
}

TEST_F(Surroundings, ProgressLineOnATerminalOnly) {
  make_input(2000);
  const Strings always{"factor", a_, q_, "--force", "--progress", "always", "--memory", "6MiB"};
  const std::string shown = terminal_output(always, "xterm");
  EXPECT_NE(shown.find("factor  "), std::string::npos) << shown;
  EXPECT_NE(shown.find("/2,000  "), std::string::npos) << shown;
  EXPECT_TRUE(shown.ends_with("\r\x1b[K")) << "the line is cleared at the end";
  EXPECT_EQ(terminal_output(always, "dumb").find('\x1b'), std::string::npos);
  const std::string small = dir_ / "small.h5";
  write_matrices<float>(small, {}, make_matrices<float>("gauss", 1, 3, 3).view());
  EXPECT_EQ(terminal_output({"factor", small, q_, "--force", "--order", "row"}, "xterm"), "")
      << "not within the first second";
  EXPECT_EQ(terminal_output({"factor", a_, q_, "--force", "--order", "row", "--progress", "never"},
                            "xterm"),
            "");
  EXPECT_EQ(run_tool({"factor", a_, q_, "--force", "--order", "row"}).err, "");
}

}  // namespace
}  // namespace qrtool::test::surroundings_test
