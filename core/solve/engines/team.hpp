// SPDX-License-Identifier: Apache-2.0
// team.hpp: a loop on the threads that the CPU backend uses, too. Threads of another kind would
// share the cores with those, which wait for their next work without sleeping. Private to core.
#pragma once

#include <omp.h>

#include <exception>

#include "core/batch.hpp"
#include "core/machine/openmp.hpp"

namespace qrtool {

/// Calls body(i, thread) for every i < count. The last exception is thrown again.
template <class Body>
void for_each_in_team(index_t count, int threads, Body body) {
  const int team = count > 1 ? threads_for_region(threads) : 1;
  std::exception_ptr failure;  // must not leave the region
#pragma omp parallel for num_threads(team) schedule(dynamic, 1) if (team > 1)
  for (index_t i = 0; i < count; ++i) {
    try {
      body(i, omp_get_thread_num());
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace qrtool
