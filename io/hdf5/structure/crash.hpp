// SPDX-License-Identifier: Apache-2.0
// crash.hpp: tells a handler of signals which file the HDF5 library was reading.
#pragma once

namespace qrtool::hdf5 {

/// Whether this thread is inside the library. Async-signal-safe.
bool is_in_library() noexcept;

/// Returns the descriptor for messages: standard error, also while the library starts, when nothing
/// else may write to it. Async-signal-safe.
int message_descriptor() noexcept;

/// Returns the name, escaped, of the HDF5 file that this thread was reading inside the library;
/// null outside the library. HDF5 1.10 crashes on some damaged files. Async-signal-safe.
const char* file_in_library() noexcept;

}  // namespace qrtool::hdf5
