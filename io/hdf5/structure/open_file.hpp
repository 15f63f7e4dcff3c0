// SPDX-License-Identifier: Apache-2.0
// open_file.hpp: opens HDF5 files that other programs wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file/input_file.hpp"
#include "io/hdf5/structure/file.hpp"

namespace qrtool::hdf5 {

/// A file that is open for reading.
struct InputFile {
  std::string name;        // the user's text
  std::string shown;       // escaped, for messages
  std::uint64_t size = 0;  // bytes
  Handle handle;
  std::optional<FileStamp> stamp;  // of the moment when it was opened
  bool is_by_julia = false;        // the mark of JLD or JLD2 stands before the HDF5 data
};

/// Opens a file for reading. Errors: InputError if it is not HDF5, is truncated or damaged, or is
/// open for writing.
InputFile open_file(const std::string& name);

/// Throws if an error text of HDF5 says that a newer release wrote `what`. A release reads the
/// files of older ones, and refuses version numbers that it does not know.
void refuse_newer_format(const InputFile& file, std::string_view what, const std::string& error);

}  // namespace qrtool::hdf5
