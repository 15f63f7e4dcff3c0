// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of devices and of builds that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <chrono>
#include <cstddef>

namespace qrtool::tuning {

/// Share of the device's memory that is used, in percent. 50 .. 95. The driver needs some memory
/// for itself, as do other programs. A shortage is not fatal. The share is chosen, not measured.
inline constexpr std::size_t device_memory_percent = 85;

// ---- building (builders.hpp, program_cache)

/// Kernels of a program that has no heavy one. 2 .. 5. A kernel takes 0.1 to 0.3 s, a program 0.1 s
/// more, and 5 to 13 ms when the driver's cache has it (NVIDIA H200, driver 580, 2026-11).
inline constexpr std::size_t most_kernels_of_part = 3;

/// Processes that build programs beside this one, at most one less than --threads. 0 .. 8. Each
/// takes 0.13 s and 0.1 s after the one before it to start, since the driver makes contexts one
/// after another (NVIDIA H200, driver 580, 2026-11), and holds a context on the device. The number
/// is estimated from this, not measured.
inline constexpr int most_builders = 4;
/// Host memory for each of them, out of --memory. An upper estimate, not measured.
inline constexpr std::size_t builder_bytes = std::size_t{1} << 30;
/// They start when a build has taken this long. 20 .. 200 ms. A program from the driver's cache
/// takes 12 ms.
inline constexpr std::chrono::milliseconds builder_patience{50};
/// A program that a builder has built and that takes longer was not in the cache.
inline constexpr std::chrono::milliseconds slowest_cached_program{100};

/// Bytes of a piece of a matrix that goes to a device in pieces. 1 MiB .. 64 MiB. A copy of 8 MiB
/// takes 0.16 ms from page-locked memory of an H200, ten times as long as its start, and the six
/// pieces of a run are page-locked in 25 ms.
inline constexpr std::size_t piece_bytes = std::size_t{8} << 20;

}  // namespace qrtool::tuning
