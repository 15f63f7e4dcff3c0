// SPDX-License-Identifier: Apache-2.0
// openmp.hpp: the threads that a parallel region of OpenMP may ask for.
#pragma once

namespace qrtool {

/// Returns how many of `wanted` threads the next region of this thread may have: at least 1. OpenMP
/// ends the process if it cannot start a thread, so every region asks here first. If a region needs
/// more threads than the last one of this thread, they are started for a trial, at most once a
/// second, and have ended when the call returns.
int threads_for_region(int wanted);

}  // namespace qrtool
