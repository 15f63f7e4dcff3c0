// SPDX-License-Identifier: Apache-2.0
// host.hpp: how much memory and how many cores this process may use. Nobody else counts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/machine/comm.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// Returns bytes that can still be taken: the least of the machine's available memory, the room
/// under the memory limits of the control groups, and the room under the limit of the address
/// space.
std::size_t free_memory_bytes();

/// Returns the number of cores that this process is bound to, but no more than the quotas of its
/// control groups pay for.
int available_cores();

/// Returns cores of the machine, whether this process may run on them or not.
int machine_cores();

/// Returns --memory and --threads (0: not given), or half of the free memory and all cores.
Limits host_limits(std::optional<std::uint64_t> memory_bytes, int threads);

/// Returns the part of the memory for reading and writing files that counts for --memory: all of it
/// or, below 16 MiB, which chunks of files alone may need, all except the first 7 MiB.
std::size_t counted_file_bytes(std::size_t bytes, std::size_t memory_bytes);

/// Returns the hint for a run that needs `bytes` of memory, its files included, and has less by
/// --memory. The hint names an eighth and 8 MiB more, because the memory for files grows with
/// --memory.
std::string hint_of_memory(std::size_t bytes);

/// Returns a rank's share of the machine, unless the user has set the limits of each rank.
Limits rank_limits(std::optional<std::uint64_t> memory_bytes, int threads, const Comm& comm);

/// Returns the least of memory.max - memory.current, in bytes, over `directory` and its parents up
/// to `root` (control groups, version 2; version 1's file names count too).
std::size_t cgroup_room_bytes(const std::string& root, const std::string& directory);

/// Returns the cores that the quota in `<directory>/cpu.max`, or in a parent's up to `root`,
/// allows, rounded up; INT_MAX without a quota. Version 1's file names count too.
int cgroup_cores(const std::string& root, const std::string& directory);

}  // namespace qrtool
