// SPDX-License-Identifier: Apache-2.0
// scratch_file.hpp: files without a name, and memory that the system may move to one when memory is
// scarce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/batch.hpp"
#include "io/file/descriptor.hpp"

namespace qrtool {

/// Errors: OutputError where no file can be created in `directory`.
void require_scratch(const std::string& directory);

/// The directory for scratch files where the user names none: $TMPDIR, or /tmp.
std::string default_scratch();

/// Creates a file without a name, which disappears when it is closed. The descriptor is negative,
/// with errno, where that fails.
Descriptor create_nameless(const std::string& directory);

/// Reserves disk space for a file, and gives it this size. Returns 0 or errno; ENOSPC comes before
/// anything is reserved.
int reserve_space(int file, std::uint64_t bytes);

/// Maps `bytes` of memory from a file without a name in `directory`. The file's space is reserved,
/// and is freed with the memory or when the process ends. Errors: OutputError.
HostMemory map_scratch(const std::string& directory, std::size_t bytes);

}  // namespace qrtool
