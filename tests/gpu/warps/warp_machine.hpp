// SPDX-License-Identifier: Apache-2.0
// warp_machine.hpp: runs a kernel that is compiled for the CPU, with NVIDIA's bodies of its
// functions (tests/gpu/warps/nvidia.clh). Every work-item of a group has a stack of its own. It
// runs until it waits for others: at a barrier, or where a warp exchanges values. One warp goes on,
// its work-items in an order that changes from turn to turn, while the others stand still: for 1 to
// 2000 rounds by chance, or until it has to wait for them. Then it is another one's turn.
//
// Each access of local and global memory is compared with those before it, and a race stops the
// program (access_log.hpp). Copies to local memory that run during the arithmetic arrive when they
// are waited for; until then there is NaN in their place. Before each group, local memory is filled
// with NaN.
#pragma once

#include <cstddef>
#include <functional>

#include "tests/gpu/warps/access_log.hpp"

namespace qrtool::test {

/// Returns the memory of all buffers.
GlobalMemory& global_memory();

class WarpMachine {
 public:
  WarpMachine(unsigned seed, LocalMemory local);
  ~WarpMachine();
  WarpMachine(const WarpMachine&) = delete;
  WarpMachine& operator=(const WarpMachine&) = delete;

  /// Calls `kernel` in each work-item of each group. Errors: std::runtime_error where the
  /// work-items wait for one another for ever, for a race, and for a copy that reads or writes
  /// elsewhere than it may.
  void run(std::size_t groups, int group_size, const std::function<void()>& kernel);
};

}  // namespace qrtool::test
