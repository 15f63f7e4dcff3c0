// SPDX-License-Identifier: Apache-2.0
// warp_machine.hpp: runs a kernel that is compiled for the CPU, with NVIDIA's bodies of its
// functions (tests/gpu/warps/gpu/common/nvidia.clh). Every work-item of a group has a stack of its
// own. It runs until it waits for others: at a barrier, or where a warp exchanges values. Then
// another one runs, in an order that changes from turn to turn. What a work-item may not see before
// a barrier is so seen or not seen by chance, and a barrier that is missing gives other results.
//
// Before each group, local memory is filled with NaN.
#pragma once

#include <cstddef>
#include <functional>

namespace qrtool::test {

/// When copies to local memory arrive that run during the arithmetic.
enum class CopyTime {
  at_once,  // finds what still reads the place
  at_wait   // finds a wait that is missing
};

class WarpMachine {
 public:
  WarpMachine(CopyTime copies, unsigned seed);
  ~WarpMachine();
  WarpMachine(const WarpMachine&) = delete;
  WarpMachine& operator=(const WarpMachine&) = delete;

  /// Memory that copies may read. Until the first call they may read everything.
  void may_read(const void* first, std::size_t bytes);

  /// Calls `kernel` in each work-item of each group. Errors: std::runtime_error where the
  /// work-items wait for one another for ever, and for a copy that reads or writes elsewhere than
  /// it may.
  void run(std::size_t groups, int group_size, const std::function<void()>& kernel);
};

}  // namespace qrtool::test
