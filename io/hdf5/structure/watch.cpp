// SPDX-License-Identifier: Apache-2.0
// watch.cpp: compares signs of progress with the processor time of the thread in the library. A
// thread that waits for a disk uses none, and is left alone.
#include "io/hdf5/structure/watch.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <climits>

namespace qrtool::hdf5 {
namespace {

std::atomic<StuckHandler> stuck_handler = nullptr;
std::atomic<std::uint64_t> largest_file = 0;  // bytes
std::atomic<bool> is_watching = false;

// These variables describe the thread that is in the library.
std::atomic<bool> is_inside = false;
std::atomic<clockid_t> clock_inside = 0;
std::atomic<const char*> file_inside = nullptr;
std::atomic<std::uint64_t> progress = 0;
thread_local int reads_of_numbers = 0;
std::atomic<bool> is_reading_numbers = false;

double most_seconds() {
  constexpr double least = 1.5, bytes_per_second = 64 << 20;
  return least + static_cast<double>(largest_file.load()) / bytes_per_second;
}

/// Returns the processor time that the thread in the library has used; negative where there is
/// none.
double seconds_inside() {
  timespec used{};
  if (!is_inside || is_reading_numbers || clock_gettime(clock_inside, &used) != 0) return -1;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Allocates nothing, so that it needs little memory of its own.
void* watch(void*) {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
  std::uint64_t seen = 0;
  double since = -1;  // processor time at the last sign of progress
  for (;;) {
    nanosleep(&pause, nullptr);
    const std::uint64_t now = progress;
    const double seconds = seconds_inside();
    if (seconds < 0 || since < 0 || now != seen) {
      seen = now;
      since = seconds;
    } else if (seconds - since > most_seconds() && now == progress) {
      if (const StuckHandler handler = stuck_handler) handler(file_inside);
    }
  }
}

/// Starts a thread that takes no signals. Without one, nothing is watched.
void start_watch() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::max<std::size_t>(PTHREAD_STACK_MIN, 64 << 10));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread{};
  pthread_create(&thread, &attributes, watch, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace

void set_stuck_handler(StuckHandler handler) noexcept { stuck_handler = handler; }

void watch_library(std::uint64_t file_bytes) noexcept {
  if (stuck_handler.load() == nullptr) return;
  std::uint64_t largest = largest_file;
  while (largest < file_bytes && !largest_file.compare_exchange_weak(largest, file_bytes)) {
  }
  if (!is_watching.exchange(true)) start_watch();
}

void note_progress() noexcept { progress.fetch_add(1, std::memory_order_relaxed); }

void note_entry(const char* file) noexcept {
  clockid_t clock = 0;
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
  clock_inside = clock;
  file_inside = file;
  note_progress();
  is_inside = true;
}

void note_exit() noexcept { is_inside = false; }

NumbersRead::NumbersRead() noexcept {
  ++reads_of_numbers;
  is_reading_numbers = true;
}

NumbersRead::~NumbersRead() {
  note_progress();
  if (--reads_of_numbers == 0) is_reading_numbers = false;
}

bool NumbersRead::is_going_on() noexcept { return reads_of_numbers > 0; }

}  // namespace qrtool::hdf5
