// SPDX-License-Identifier: Apache-2.0
// scratch_file.hpp: allocates memory that the system may move to a file when memory is scarce.
#pragma once

#include <cstddef>
#include <string>

#include "core/batch.hpp"

namespace qrtool {

/// Creates a file without a name, which disappears when its descriptor is closed. Returns a
/// negative number, with errno, where it cannot.
int create_nameless(const std::string& directory);

/// Errors: OutputError where no file can be created in `directory`.
void require_scratch(const std::string& directory);

/// Maps `bytes` of memory from a file without a name in `directory`. The file's space is reserved,
/// and is freed with the memory or when the process ends. Errors: OutputError.
HostMemory map_scratch(const std::string& directory, std::size_t bytes);

}  // namespace qrtool
