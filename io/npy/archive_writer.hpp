// SPDX-License-Identifier: Apache-2.0
// archive_writer.hpp: brings files together in a zip archive.
#pragma once

#include <span>
#include <string>

#include "io/npy/array_writer.hpp"

namespace qrtool::npy {

/// A member of an archive: its name, and an open file with its bytes.
struct Member {
  std::string name;
  int file = -1;
};

/// Writes an archive of uncompressed members, with ZIP64 if they need it. It holds no times, so
/// that equal members give equal archives. `to` is an empty file. Errors: OutputError.
void write_archive(const OutputFile& to, std::span<const Member> members);

}  // namespace qrtool::npy
