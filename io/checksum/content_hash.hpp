// SPDX-License-Identifier: Apache-2.0
// content_hash.hpp: a hash that shows whether two processes open the same file.
#pragma once

#include <cstdint>
#include <string>

namespace qrtool {

/// Returns a hash of the file's size and bytes. Of a file above 64 MiB only 1024 blocks of 64 KiB
/// are read, evenly spaced from the first byte to the last, so that small differences between them
/// are missed. Errors: InputError.
std::uint64_t content_hash(const std::string& path);

}  // namespace qrtool
