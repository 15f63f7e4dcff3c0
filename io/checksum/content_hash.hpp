// SPDX-License-Identifier: Apache-2.0
// content_hash.hpp: a hash that shows whether two processes open the same file.
#pragma once

#include <cstdint>
#include <string>

namespace qrtool {

/// Returns a hash of the file's size and bytes. Of a file above 64 MiB it takes 1024 blocks of 64
/// KiB that lie evenly from the first byte to the last: a file that differs in few places elsewhere
/// has the same hash. Errors: InputError.
std::uint64_t content_hash(const std::string& path);

}  // namespace qrtool
