// SPDX-License-Identifier: Apache-2.0
// signals.cpp: signal handlers, which use only async-signal-safe calls.
#include "app/process/signals.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "io/file/atomic_file.hpp"
#include "io/hdf5/structure/crash.hpp"
#include "io/hdf5/structure/watch.hpp"

namespace qrtool {
namespace {

std::atomic<const char*> message = "qrtool: interrupted\n";
static_assert(std::atomic<const char*>::is_always_lock_free);
/// The counts of count_outputs(); 0: outputs are not counted.
std::atomic<int> outputs = 0, complete_outputs = 0;
static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<bool> is_one_of_several = false;
static_assert(std::atomic<bool>::is_always_lock_free);
std::atomic<bool> is_exit_ours = false;

/// Returns the message. If rank 0 was killed, another rank removes its files and prints the message
/// for all.
const char* choose_text(Removed removed) {
  const char* own = message.load();
  if (!is_one_of_several || removed == Removed::none) return own;
  if (removed == Removed::gone) return "";
  return *own != 0 ? own : "qrtool: interrupted; nothing written\n";
}

void write_error(const char* text) {
  [[maybe_unused]] const ssize_t ignored =
      write(hdf5::message_descriptor(), text, std::strlen(text));
}

/// Appends a number to a text that has room for it.
char* append_number(char* to, int number) {
  std::array<char, 12> digits{};
  std::size_t count = 0;
  for (; count == 0 || number > 0; number /= 10)
    digits[count++] = static_cast<char>('0' + number % 10);
  while (count > 0) *to++ = digits[--count];
  return to;
}
char* append(char* to, const char* text) { return std::strcpy(to, text) + std::strlen(text); }

/// Writes "qrtool: interrupted; 3 of 9 outputs are complete".
void write_count() {
  std::array<char, 160> line{};
  char* to = append(line.data(), "qrtool: interrupted");
  if (message.load() == interrupted_while_finishing)
    to = append(to, " while an output was being finished");
  to = append_number(append(to, "; "), complete_outputs);
  to = append_number(append(to, " of "), outputs);
  append(to, " outputs are complete\n");
  write_error(line.data());
}

// SA_RESETHAND restores the default action before the handler runs. So raise() ends the process
// when the handler returns, and a second Ctrl-C ends it at once.
extern "C" void clean_up_and_die(int signal_number) {
  const Removed removed = remove_temporary_files();
  if (signal_number != SIGPIPE) outputs > 0 ? write_count() : write_error(choose_text(removed));
  raise(signal_number);
}

void write_out_of_memory(const char* file) {
  write_error("qrtool: ");
  if (file != nullptr) {
    write_error(file);
    write_error(": ");
  }
  write_error(
      "out of memory in the HDF5 library\nhint: try a smaller --memory or fewer --threads\n");
}

/// The HDF5 library goes round and round in a damaged file.
void end_stuck_library(const char* file) {
  remove_temporary_files();
  write_error("qrtool: ");
  if (file != nullptr) {
    write_error(file);
    write_error(": ");
  }
  write_error("damaged HDF5 file (the HDF5 library does not come to an end with it)\n");
  _exit(static_cast<int>(ExitCode::input));
}

/// Ends the process after a driver has ended it.
[[noreturn]] void end_after_driver(const char* how) {
  write_error("qrtool: the OpenCL driver ");
  write_error(how);
  write_error("\nhint: --backend cpu works without it\n");
  _exit(static_cast<int>(ExitCode::device));
}

// A crash of the HDF5 library is the fault of the file that it reads, unless the last allocation of
// the thread has failed: the library does not check all of them. Any other crash is our fault.
extern "C" void clean_up_after_crash(int signal_number) {
  const bool has_no_memory = errno == ENOMEM;
  remove_temporary_files();
  const char* file = hdf5::file_in_library();
  if (hdf5::is_in_library() && has_no_memory) {
    write_out_of_memory(file);
    _exit(static_cast<int>(ExitCode::limit));
  }
  if (file != nullptr) {
    write_error("qrtool: ");
    write_error(file);
    write_error(": damaged HDF5 file (the HDF5 library crashed on it)\n");
    _exit(static_cast<int>(ExitCode::input));
  }
  if (DriverScope::is_entered()) end_after_driver("crashed");
  write_error("qrtool: internal error in version " QRTOOL_VERSION ": it crashed; please report\n");
  raise(signal_number);
}

// Some libraries end the process: HDF5 if it has no memory for an identifier, PoCL if it cannot
// write its cache, and OpenMP's if it cannot start a thread.
void clean_up_at_exit() {
  remove_temporary_files();
  if (is_exit_ours) return;
  if (hdf5::is_in_library()) {
    write_out_of_memory(hdf5::file_in_library());
  } else if (DriverScope::is_entered()) {
    end_after_driver("ended the process");
  } else {
    rlimit space{};
    const bool has_limit = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    write_error("qrtool: a library ended the process, most likely as no thread could be started\n");
    write_error(has_limit ? "hint: raise ulimit -v\n" : "hint: raise ulimit -u\n");
  }
  _exit(static_cast<int>(ExitCode::limit));
}

/// Ends the process after an exception that nothing catches, such as one in a destructor.
[[noreturn]] void end_with_uncaught_exception() {
  remove_temporary_files();
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    write_error("qrtool: out of memory\nhint: try a smaller --memory or fewer --threads\n");
    _exit(static_cast<int>(ExitCode::limit));
  } catch (...) {
  }
  write_error("qrtool: internal error in version " QRTOOL_VERSION
              ": an uncaught exception; please report\n");
  _exit(static_cast<int>(ExitCode::internal));
}

/// Ends the process if it would soon crash for lack of stack.
void require_stack() {
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= rlim_t{256} << 10) return;
  write_error("qrtool: the stack is limited to less than 256 KiB\nhint: raise ulimit -s\n");
  _exit(static_cast<int>(ExitCode::limit));
}

/// Runs before the constructors of global objects of the program and of the headers that it
/// includes, some of which allocate. The loader and the shared libraries run before it.
[[gnu::constructor(101)]] void prepare_before_main() {
  require_stack();
  std::set_terminate(end_with_uncaught_exception);
}

void handle(int signal_number, void (*handler)(int), int flags) {
  struct sigaction before {};
  if (sigaction(signal_number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal_number, &action, nullptr);
}

/// Gives this thread a second stack: a damaged file may make the library use up the first one.
void add_stack_for_handlers() {
  static char memory[std::size_t{64} << 10];
  stack_t before{}, stack{};
  if (sigaltstack(nullptr, &before) == 0 && (before.ss_flags & SS_DISABLE) == 0) return;
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  sigaltstack(&stack, nullptr);
}

}  // namespace

void install_signal_handlers() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) handle(number, clean_up_and_die, 0);
  add_stack_for_handlers();
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    handle(number, clean_up_after_crash, SA_ONSTACK);
  }
  hdf5::set_stuck_handler(end_stuck_library);
  std::atexit(clean_up_at_exit);
  signal(SIGXFSZ, SIG_IGN);
}

void take_back_abort() { handle(SIGABRT, clean_up_after_crash, SA_ONSTACK); }

void expect_exit() { is_exit_ours = true; }

void share_interrupt_message() { is_one_of_several = true; }

void set_interrupt_message(const char* literal) {
  if (literal == interrupted_when_complete) ++complete_outputs;
  message.store(literal);
}

void count_outputs(int all) { outputs = all; }

}  // namespace qrtool
