// SPDX-License-Identifier: Apache-2.0
// warp_machine.hpp: runs a kernel that is compiled for the CPU, with NVIDIA's bodies of its
// functions (tests/gpu/warps/nvidia.clh). Every work-item of a group has a stack of its own. It
// runs until it waits for others: at a barrier, or where a warp exchanges values. Then another one
// runs, in an order that changes from turn to turn. What a work-item may not see before a barrier
// is so seen or not seen by chance, and a barrier that is missing gives other results.
//
// Copies to local memory that run during the arithmetic arrive at once in every second group, which
// finds what still reads the place, and in the others when they are waited for, which finds a wait
// that is missing. Before each group, local memory is filled with NaN.
#pragma once

#include <cstddef>
#include <functional>

namespace qrtool::test {

/// The local memory of a program; null where it has none.
struct LocalMemory {
  char *first, *end;
};

class WarpMachine {
 public:
  WarpMachine(unsigned seed, LocalMemory local);
  ~WarpMachine();
  WarpMachine(const WarpMachine&) = delete;
  WarpMachine& operator=(const WarpMachine&) = delete;

  /// Calls `kernel` in each work-item of each group. Errors: std::runtime_error where the
  /// work-items wait for one another for ever, and for a copy that reads or writes elsewhere than
  /// it may.
  void run(std::size_t groups, int group_size, const std::function<void()>& kernel);
};

}  // namespace qrtool::test
