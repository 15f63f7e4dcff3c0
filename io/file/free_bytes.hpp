// SPDX-License-Identifier: Apache-2.0
// free_bytes.hpp: the room that a file system has left.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>

namespace qrtool {

/// Returns the bytes that are free for this user on the file system of an open file, or UINT64_MAX
/// if the system does not say.
inline std::uint64_t free_bytes(int descriptor) {
  struct statvfs info {};
  if (fstatvfs(descriptor, &info) != 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace qrtool
