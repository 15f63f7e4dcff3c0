// SPDX-License-Identifier: Apache-2.0
// scratch_file.hpp: memory that the system may move to a file when it is short of memory.
#pragma once

#include <cstddef>
#include <string>

#include "core/batch.hpp"

namespace qrtool {

/// `bytes` of memory, mapped from a nameless file in `directory` that is gone when the memory is
/// given back or the process ends. Its space is reserved. Errors: OutputError.
HostMemory map_scratch(const std::string& directory, std::size_t bytes);

}  // namespace qrtool
