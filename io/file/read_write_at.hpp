// SPDX-License-Identifier: Apache-2.0
// read_write_at.hpp: reading and writing at a position of a file, from any thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace qrtool {

/// Two pieces of memory, the second following the first in the file; either may be empty.
using TwoParts = std::array<iovec, 2>;

/// Fills both parts from `position` (bytes from the file's start) on. The bytes read: all of them,
/// or fewer where the file ends or where errno is not 0 afterwards.
std::size_t read_at(int descriptor, std::uint64_t position, TwoParts parts);

/// Writes both parts. 0 or errno.
int write_at(int descriptor, std::uint64_t position, TwoParts parts);

/// Has the system begin to bring these bytes of the file to the disk, and does not wait for it: the
/// sync at the end then finds little left to do. The last page is left out where more is to be
/// written to it.
void begin_sync(int descriptor, std::uint64_t position, std::uint64_t bytes);

/// How many of `threads` threads should write one file at once: they allocate pages of the system's
/// cache, which more than a few do no faster.
int useful_io_threads(int threads);
/// The same for reading. More than a few copy faster out of the cache: io/NOTES.md has the times.
int useful_reading_threads(int threads);

}  // namespace qrtool
