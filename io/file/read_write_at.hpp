// SPDX-License-Identifier: Apache-2.0
// read_write_at.hpp: reading and writing at a position of a file, from any thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qrtool {

/// Two pieces of memory, the second following the first in the file; either may be empty.
using TwoParts = std::array<iovec, 2>;

/// Fills both parts from `position` (bytes from the file's start) on. Returns the number of bytes
/// read, which is less than asked if the file ends or, with errno set, if reading fails.
std::size_t read_at(int descriptor, std::uint64_t position, TwoParts parts);

/// Fills `to` from `position` on. The bytes read: fewer than all only at the end of the file.
/// `shown`: its name in messages. Errors: InputError.
std::size_t read_input(int descriptor, std::uint64_t position, std::span<char> to,
                       const std::string& shown);

/// Writes both parts. 0 or errno.
int write_at(int descriptor, std::uint64_t position, TwoParts parts);

/// A range of bytes of a file.
struct FileRange {
  std::uint64_t position = 0, bytes = 0;
};

/// Asks the system to start writing these bytes of the file to the disk, so that little is left for
/// the sync at the end. It waits only if the disk is busy. The last page is left out if more will
/// be written to it.
void begin_sync(int descriptor, const FileRange& range);

/// Returns how many of `threads` threads are useful for writing one file: one writes, one computes
/// checksums and one has the system start to sync (prepare_and_write).
int useful_writing_threads(int threads);
/// Returns how many are of use for reading one from the system's cache (io/NOTES.md has the times).
int useful_reading_threads(int threads);

}  // namespace qrtool
