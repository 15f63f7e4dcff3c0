// SPDX-License-Identifier: Apache-2.0
// builders.cpp: starts builders, hands them programs, and does without them.
#include "gpu/host/builders.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "gpu/host/session.hpp"

namespace qrtool {
namespace {

using Clock = std::chrono::steady_clock;

/// A builder writes `ready` when it has started and after each program that it has built.
constexpr char ready = 'r';
constexpr std::chrono::milliseconds step{10};

std::vector<std::string>& command_of_process() {
  static auto& command = *new std::vector<std::string>;
  return command;
}

/// Sends all bytes. Returns false if the other side is gone.
bool send_all(int socket, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const std::uint64_t bytes = text.size();
  return send_all(socket, &bytes, sizeof(bytes)) && send_all(socket, text.data(), text.size());
}

bool read_all(int from, void* data, std::size_t bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = read(from, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::string> read_text(int from) {
  std::uint64_t bytes = 0;
  constexpr std::uint64_t most = std::uint64_t{1} << 26;
  if (!read_all(from, &bytes, sizeof(bytes)) || bytes > most) return {};
  std::string text(bytes, ' ');
  if (!read_all(from, text.data(), text.size())) return {};
  return text;
}

/// Starts a process that has `input` as standard input and no other file of this process, of which
/// some may be closed meanwhile. -1: it could not be started.
pid_t start_process(std::vector<std::string> command, int input) {
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::error_code no_files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", no_files)) {
    const int file = std::stoi(entry.path().filename());
    if (file > STDERR_FILENO) posix_spawn_file_actions_addclose(&actions, file);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = -1;
  const int error =
      posix_spawn(&process, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? process : -1;
}

}  // namespace

void set_builder_command(std::vector<std::string> command) {
  command_of_process() = std::move(command);
}
std::vector<std::string> builder_command() { return command_of_process(); }

struct Builders::Process {
  pid_t id;
  int socket;  // -1: it has ended
  std::optional<std::size_t> job;
  Clock::time_point begun;  // of the job
};

namespace {

/// Takes the exit codes of processes that have been killed, in a thread of its own: a driver needs
/// a tenth of a second to clean up after each.
template <class Processes>
void take_exit_codes(const Processes& processes) {
  std::vector<pid_t> ids;
  for (const auto& process : processes) ids.push_back(process.id);
  if (ids.empty()) return;
  const auto take = [ids = std::move(ids)] {
    for (const pid_t id : ids) {
      while (waitpid(id, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  };
  try {
    std::thread(take).detach();
  } catch (const std::system_error&) {  // there is no room for a thread
    take();
  }
}

}  // namespace

Builders::Builders(std::vector<BuildJob> jobs, const BuilderLimits& limits, int device)
    : jobs_(std::move(jobs)), limits_(limits), device_(device), begun_(Clock::now()) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) open_.push_back(i);
  if (limits_.command.empty() || limits_.most_processes < 1 || jobs_.size() < 2) return;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error&) {  // there is no room for a thread, nor for builders
  }
}

Builders::~Builders() {
  thread_ = {};  // stops and joins
  take_exit_codes(processes_);
}

std::optional<Builders::Next> Builders::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !open_.empty() || !built_.empty() || in_processes_ == 0; });
  std::deque<std::size_t>& from = open_.empty() ? built_ : open_;
  if (from.empty()) return {};
  const Next next{from.front(), open_.empty()};
  from.pop_front();
  begun_ = Clock::now();
  return next;
}

void Builders::give_up() {
  std::unique_lock lock(mutex_);
  is_given_up_ = true;
  changed_.wait(lock, [&] { return in_processes_ == 0; });
}

bool Builders::are_needed() const {
  return !open_.empty() && Clock::now() - begun_ >= limits_.patience;
}

/// The thread: waits until builders are needed, starts them, and serves them until there is nothing
/// left to build.
void Builders::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(step);
    const std::lock_guard lock(mutex_);
    if (open_.empty() || is_given_up_) return;
    if (are_needed()) break;
  }
  start_processes();
  const auto is_running = [](const Process& process) { return process.socket >= 0; };
  while (!stop.stop_requested() && std::ranges::any_of(processes_, is_running)) {
    std::vector<pollfd> sockets;
    for (const Process& process : processes_) sockets.push_back({process.socket, POLLIN, 0});
    poll(sockets.data(), sockets.size(), static_cast<int>(step.count()));
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      Process& process = processes_[i];
      if (sockets[i].revents != 0) serve(process);
      const bool is_late = process.job && Clock::now() - process.begun > limits_.most_time;
      const std::unique_lock lock(mutex_);
      const bool is_idle = !process.job && open_.empty();
      if (process.socket >= 0 && (is_late || is_idle || is_given_up_)) end(process);
    }
  }
  const std::lock_guard lock(mutex_);
  for (Process& process : processes_) {
    if (process.socket >= 0) end(process);
  }
}

void Builders::start_processes() {
  std::vector<std::string> command = limits_.command;
  command.push_back(std::to_string(device_));
  command.push_back(std::to_string(getpid()));
  const auto most =
      std::min<std::size_t>(static_cast<std::size_t>(limits_.most_processes), jobs_.size() - 1);
  while (processes_.size() < most) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    // A builder that does not read is as good as gone.
    const timeval most_time{.tv_sec = 1, .tv_usec = 0};
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &most_time, sizeof(most_time));
    const pid_t id = start_process(command, ends[1]);
    close(ends[1]);
    if (id < 0) {
      close(ends[0]);
      return;
    }
    processes_.push_back({.id = id, .socket = ends[0], .job = {}, .begun = {}});
  }
}

/// A builder has written something, or has ended: its job is done, or goes back. It gets another.
void Builders::serve(Process& process) {
  char said = 0;
  const bool is_ready = read_all(process.socket, &said, 1) && said == ready;
  std::unique_lock lock(mutex_);
  if (!is_ready) return end(process);
  if (process.job) {
    built_.push_back(*process.job);
    process.job.reset();
    --in_processes_;
    changed_.notify_all();
  }
  if (open_.empty() || is_given_up_) return;
  process.job = open_.front();
  process.begun = Clock::now();
  open_.pop_front();
  ++in_processes_;
  lock.unlock();
  const BuildJob& job = jobs_[*process.job];
  if (send_text(process.socket, job.options) && send_text(process.socket, job.text)) return;
  lock.lock();
  end(process);
}

/// Ends a builder; its job goes back. The caller holds the lock.
void Builders::end(Process& process) {
  kill(process.id, SIGKILL);
  close(process.socket);
  process.socket = -1;
  if (process.job) {
    open_.push_back(*process.job);
    process.job.reset();
    --in_processes_;
  }
  changed_.notify_all();
}

namespace {

/// A context of the device. Builders make theirs one after another: drivers give each a turn, so
/// that all of them would have theirs only when the last one does.
std::unique_ptr<DeviceContext> context_in_turn(const OpenDevice& open) {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  flock(file, LOCK_EX);  // where this fails, there are no turns
  std::unique_ptr<DeviceContext> context = open();
  close(file);
  return context;
}

}  // namespace

int run_builder(int device, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1;
  try {
    const std::vector<DeviceHandle> handles = device_handles();
    if (device < 0 || static_cast<std::size_t>(device) >= handles.size()) return 1;
    const auto context = context_in_turn(handles[static_cast<std::size_t>(device)].open);
    while (send_all(STDIN_FILENO, &ready, 1)) {
      const std::optional<std::string> options = read_text(STDIN_FILENO);
      const std::optional<std::string> text = options ? read_text(STDIN_FILENO) : options;
      if (!text) return 0;
      context->build(*text, *options);
    }
    return 0;
  } catch (const DeviceFailure&) {
    return 1;
  }
}

}  // namespace qrtool
