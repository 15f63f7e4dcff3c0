// SPDX-License-Identifier: Apache-2.0
// watch.hpp: notices where the HDF5 library does not come to an end with the structure of a file.
// HDF5 1.10 goes round and round in some damaged files. A thread looks ten times a second whether
// the one that is in the library has read something or has called the tool back.
#pragma once

#include <cstdint>

namespace qrtool::hdf5 {

/// A function that ends the process. `file` is the escaped name of the file that is read, or null.
using StuckHandler = void (*)(const char* file);

/// Sets the function that is called, on a thread of its own, where the library has used the
/// processor for 1.5 s, and a second more for each 64 MiB of the file, without a sign of progress.
/// Without it nothing is watched.
void set_stuck_handler(StuckHandler handler) noexcept;

/// Begins to watch, where a handler is set. `file_bytes` is the size of the file that is opened.
void watch_library(std::uint64_t file_bytes) noexcept;

/// Says that the library gets on: it reads another place of the file, or calls the tool back.
void note_progress() noexcept;

/// Notes that the calling thread enters or leaves the library, and which file it reads there. Only
/// one thread is in the library at a time.
void note_entry(const char* file) noexcept;
void note_exit() noexcept;

/// While an object of this class exists, the library reads or converts the numbers of a dataset,
/// which may take long. Their places were looked up before, so that this ends. No heap is read.
class NumbersRead {
 public:
  NumbersRead() noexcept;
  ~NumbersRead();
  NumbersRead(const NumbersRead&) = delete;
  NumbersRead& operator=(const NumbersRead&) = delete;
  /// Whether this thread is reading numbers.
  static bool is_going_on() noexcept;
};

}  // namespace qrtool::hdf5
