// SPDX-License-Identifier: Apache-2.0
// prepare_and_write.hpp: one thread writes the pieces of a file while others prepare the next ones.
#pragma once

#include <atomic>
#include <vector>

#include "core/machine/parallel.hpp"

namespace qrtool {

/// Calls prepare(i) once for every i < count, on any of `threads` threads; write(i) in ascending
/// order, on one thread and after prepare(i); and beside() once, on any thread. The system lets one
/// thread at a time write to a file, so several would keep their cores busy waiting. prepare() and
/// beside() must not throw. The first exception of write() ends the loop and is thrown again.
template <class Prepare, class Write, class Beside>
void prepare_and_write(index_t count, int threads, Prepare prepare, Write write, Beside beside) {
  enum State : int { open, taken, ready };
  std::vector<std::atomic<int>> states(static_cast<std::size_t>(count));
  const auto prepare_once = [&](index_t i) noexcept {
    std::atomic<int>& state = states[static_cast<std::size_t>(i)];
    int expected = open;
    if (!state.compare_exchange_strong(expected, taken)) return;
    prepare(i);
    state = ready;
    state.notify_one();
  };
  const auto write_all = [&] {
    for (index_t i = 0; i < count; ++i) {
      prepare_once(i);
      states[static_cast<std::size_t>(i)].wait(taken);
      write(i);
    }
  };
  // The thread that takes index 0 writes. The last index is beside().
  parallel_for(count + 1, threads, [&](index_t i, int) {
    if (i == count) {
      beside();
    } else if (i == 0) {
      write_all();
    } else {
      prepare_once(i);
    }
  });
}

}  // namespace qrtool
