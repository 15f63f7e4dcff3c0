// SPDX-License-Identifier: Apache-2.0
// run_tool.cpp: fork, exec, wait with a time limit; files of matrices.
#include "tests/support/run_tool.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "core/matrix/matrices.hpp"
#include "io/open/input.hpp"
#include "io/open/output.hpp"
#include "io/write/writer.hpp"

namespace qrtool::test {
namespace {

int memory_file(const std::string& text) {
  const int descriptor = memfd_create("qrtool-test", MFD_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error("memfd_create failed");
  if (write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot fill a memory file");
  lseek(descriptor, 0, SEEK_SET);
  return descriptor;
}

std::string contents(int descriptor) {
  std::string text(static_cast<std::size_t>(lseek(descriptor, 0, SEEK_END)), '\0');
  const ssize_t got = pread(descriptor, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

[[noreturn]] void become_tool(const std::vector<std::string>& arguments,
                              const ToolOptions& options) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
  for (const auto& [name, value] : options.environment) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(126);
  if (options.in_child) options.in_child();
  std::vector<char*> argv{const_cast<char*>("qrtool")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(QRTOOL_BINARY, argv.data());
  _exit(127);
}

std::unique_ptr<Writer> create(const std::string& path, const std::vector<index_t>& leading,
                               std::vector<MatrixDataset> datasets) {
  OutputSpec spec;
  spec.path = path;
  spec.force = true;
  spec.leading = leading;
  spec.datasets = std::move(datasets);
  return create_output(spec);
}

}  // namespace

RunningTool::RunningTool(const std::vector<std::string>& arguments, ToolOptions options)
    : options_(std::move(options)),
      in_(memory_file(options_.input)),
      out_(memory_file("")),
      err_(memory_file("")) {
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  dup2(in_, STDIN_FILENO);
  dup2(out_, STDOUT_FILENO);
  dup2(err_, STDERR_FILENO);
  become_tool(arguments, options_);
}

RunningTool::~RunningTool() {
  if (pid_ > 0) wait();
  for (const int descriptor : {in_, out_, err_}) close(descriptor);
}

void RunningTool::send(int signal) const { kill(pid_, signal); }

ToolResult RunningTool::wait() {
  ToolResult result;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd ended{process, POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(options_.timeout_seconds * 1000)) == 0) {
    result.timed_out = true;
    send(SIGKILL);
  }
  close(process);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = contents(out_);
  result.err = contents(err_);
  return result;
}

ToolResult run_tool(const std::vector<std::string>& arguments, ToolOptions options) {
  return RunningTool(arguments, std::move(options)).wait();
}

Stored read_dataset(const std::string& path, const std::string& dataset) {
  InputSpec spec;
  spec.path = path;
  spec.dataset = dataset;
  const std::unique_ptr<Reader> reader = open_input(spec);
  const Source& source = reader->source();
  Stored stored{source, Batch<double>(source.count(), source.m, source.n)};
  reader->read(0, stored.view());
  return stored;
}

template <class T>
void write_matrices(const std::string& path, const std::vector<index_t>& leading,
                    BatchView<const T> a) {
  const auto writer = create(path, leading, {{"A", element_type<T>, a.rows, a.cols}});
  writer->write("A", 0, a);
  writer->commit();
}

template <class T>
void write_factors(const std::string& path, const std::vector<index_t>& leading,
                   BatchView<const T> q, BatchView<const T> r) {
  const auto writer =
      create(path, leading,
             {{"Q", element_type<T>, q.rows, q.cols}, {"R", element_type<T>, r.rows, r.cols}});
  writer->write("Q", 0, q);
  writer->write("R", 0, r);
  writer->commit();
}

template <class T>
Batch<T> make_matrices(std::string_view kind, index_t count, index_t m, index_t n) {
  Batch<T> batch(count, m, n);
  MatrixRequest request;
  request.kind = kind;
  for (index_t b = 0; b < count; ++b) fill_matrix<T>(request, b, batch.view()[b]);
  return batch;
}

#define QRTOOL_FOR(T)                                                                              \
  template void write_matrices(const std::string&, const std::vector<index_t>&,                    \
                               BatchView<const T>);                                                \
  template void write_factors(const std::string&, const std::vector<index_t>&, BatchView<const T>, \
                              BatchView<const T>);                                                 \
  template Batch<T> make_matrices(std::string_view, index_t, index_t, index_t);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
#undef QRTOOL_FOR

}  // namespace qrtool::test
