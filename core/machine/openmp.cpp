// SPDX-License-Identifier: Apache-2.0
// openmp.cpp: starts threads for a trial.
#include "core/machine/openmp.hpp"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <vector>

namespace qrtool {
namespace {

/// A thread that waits until the trial is over.
struct TrialThread {
  const std::atomic<bool>* is_over = nullptr;
  pthread_t handle{};
  std::atomic<pid_t> id = 0;
};

void* wait_for_end(void* of) {
  auto& thread = *static_cast<TrialThread*>(of);
  thread.id = gettid();
  thread.is_over->wait(false);
  return nullptr;
}

/// A thread counts among the processes of the user for a moment after it was joined.
void wait_until_gone(const TrialThread& thread) {
  while (thread.id != 0 && tgkill(getpid(), thread.id, 0) == 0) sched_yield();
}

/// Starts up to `count` threads that exist at the same time, and ends them. Returns their number.
int start_for_trial(int count) {
  std::vector<TrialThread> threads(static_cast<std::size_t>(count));
  std::atomic<bool> is_over = false;
  // Signals are handled by threads that stay.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int started = 0;
  for (TrialThread& thread : threads) {
    thread.is_over = &is_over;
    if (pthread_create(&thread.handle, nullptr, wait_for_end, &thread) != 0) break;
    ++started;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  is_over = true;
  is_over.notify_all();
  for (int i = 0; i < started; ++i)
    pthread_join(threads[static_cast<std::size_t>(i)].handle, nullptr);
  for (int i = 0; i < started; ++i) wait_until_gone(threads[static_cast<std::size_t>(i)]);
  return started;
}

/// OpenMP also ends the process if it has no memory for the state of a region.
bool has_room_for_region(int threads) {
  constexpr std::size_t bytes_of_thread = 4096;
  void* const room = std::malloc(bytes_of_thread * static_cast<std::size_t>(threads));
  std::free(room);
  return room != nullptr;
}

/// Returns the number of threads, this one included, that a region could have now.
int try_threads(int wanted) {
  try {
    return has_room_for_region(wanted) ? 1 + start_for_trial(wanted - 1) : 1;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

}  // namespace

int threads_for_region(int wanted) {
  using Clock = std::chrono::steady_clock;
  // Regions of different sizes may follow each other fast, and each larger one starts threads.
  constexpr auto trial_holds = std::chrono::seconds(1);
  // OpenMP keeps the threads of a thread's last region, but not the threads of a region within
  // another.
  thread_local int last = 1, tried = 1;
  thread_local Clock::time_point tried_at{};
  if (wanted <= 1) return 1;
  const bool has_threads = !omp_in_parallel() && wanted <= last;
  const bool holds = has_threads || (wanted <= tried && Clock::now() - tried_at < trial_holds);
  if (!holds) {
    wanted = try_threads(wanted);
    tried = wanted;
    tried_at = Clock::now();
  }
  if (!omp_in_parallel()) last = wanted;
  return wanted;
}

}  // namespace qrtool
