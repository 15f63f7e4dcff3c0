// SPDX-License-Identifier: Apache-2.0
// signals.cpp: signal handlers, which use only async-signal-safe calls.
#include "app/process/signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "io/file/atomic_file.hpp"

namespace qrtool {
namespace {

std::atomic<const char*> message = "qrtool: interrupted\n";
static_assert(std::atomic<const char*>::is_always_lock_free);
std::atomic<bool> is_one_of_several = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// Of several ranks, the one that removes rank 0's files prints the message for all, since rank 0
/// itself may have been killed.
const char* choose_text(Removed removed) {
  const char* own = message.load();
  if (!is_one_of_several || removed == Removed::none) return own;
  if (removed == Removed::gone) return "";
  return *own != 0 ? own : "qrtool: interrupted; nothing written\n";
}

// SA_RESETHAND restores the default action before the handler runs. So raise() ends the process
// when the handler returns, and a second Ctrl-C ends it at once.
extern "C" void clean_up_and_die(int signal_number) {
  const Removed removed = remove_temporary_files();
  if (signal_number != SIGPIPE) {
    const char* text = choose_text(removed);
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
  }
  raise(signal_number);
}

void handle(int signal_number) {
  struct sigaction before {};
  if (sigaction(signal_number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = clean_up_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(signal_number, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) handle(signal_number);
  signal(SIGXFSZ, SIG_IGN);
}

void share_interrupt_message() { is_one_of_several = true; }

void set_interrupt_message(const char* literal) { message.store(literal); }

}  // namespace qrtool
