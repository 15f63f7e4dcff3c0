// SPDX-License-Identifier: Apache-2.0
// input_file.hpp: what can be said of a file before its format's reader sees it.
#pragma once

#include <cstdint>
#include <string>

namespace qrtool {

enum class Content { hdf5, text, utf16, binary };

/// Whether the name ends in .csv, .tsv or .txt (in any case).
bool has_text_ending(const std::string& path);

/// Bytes of a regular file that can be read. Nothing else is opened: opening a FIFO would block.
/// Errors: InputError, also where the file is empty.
std::uint64_t readable_size(const std::string& path);

/// What the first bytes look like; HDF5 may begin at 512, 1024, 2048, ... (MATLAB's user block).
Content sniff(const std::string& path);

/// The file and dataset of "FILE:/path"; a file whose full name holds the colon wins.
struct Location {
  std::string file, dataset;
};
Location split_location(const std::string& path);

}  // namespace qrtool
