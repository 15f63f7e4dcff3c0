// SPDX-License-Identifier: Apache-2.0
// openmp.hpp: the threads that a parallel region of OpenMP may ask for.
#pragma once

namespace qrtool {

/// Of `wanted` threads, those that the system gives to a region that this thread begins next: at
/// least 1. OpenMP ends the process where it cannot start a thread, so that every region asks here
/// first. Where a region needs more threads than the last one of this thread, as many are started
/// for a trial, at most once a second, and have ended when the call returns.
int threads_for_region(int wanted);

}  // namespace qrtool
