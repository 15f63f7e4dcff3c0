// SPDX-License-Identifier: Apache-2.0
// parallel.hpp: runs a loop on several threads.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// Calls body(i, worker) once for every i < count. No two threads use the same worker number
/// (< threads) at one time. The first exception stops the loop and is thrown again.
template <class Body>
void parallel_for(index_t count, int threads, Body body) {
  std::atomic<index_t> next = 0;
  std::mutex mutex;
  std::exception_ptr first_error;
  const auto work = [&](int worker) {
    try {
      for (index_t i = next++; i < count; i = next++) body(i, worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int worker = 1; worker < threads && worker < count; ++worker)
      workers.emplace_back(work, worker);
    work(0);
  }
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace qrtool
