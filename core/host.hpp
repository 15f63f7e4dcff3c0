// SPDX-License-Identifier: Apache-2.0
// host.hpp: how much memory and how many cores this process may use.
#pragma once

#include <cstddef>
#include <string>

namespace qrtool {

/// Bytes that can still be taken: the least of the machine's available memory, the room under the
/// memory limits of the control groups, and the room under the limit of the address space.
std::size_t free_memory_bytes();

/// Cores that this process may run on.
int available_cores();

/// The least room, in bytes, between `<directory>/memory.max` and memory.current over `directory`
/// and its parents up to `root` (control groups, version 2; version 1's file names count too).
std::size_t cgroup_room_bytes(const std::string& root, std::string directory);

}  // namespace qrtool
