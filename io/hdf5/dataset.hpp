// SPDX-License-Identifier: Apache-2.0
// dataset.hpp: opening HDF5 files of others, and what one dataset in them holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "io/hdf5/file.hpp"

namespace qrtool::hdf5 {

/// A file that is open for reading.
struct InputFile {
  std::string name;        // as the user gave it
  std::string shown;       // escaped, for messages
  std::uint64_t size = 0;  // bytes
  Handle handle;
};

/// Errors: InputError where the file is no HDF5 file, truncated, damaged, or open for writing.
InputFile open_file(const std::string& name);

/// A dataset and what it holds.
struct Dataset {
  std::string path;
  std::string shown;  // for messages: escaped; an Octave variable has the name of its group
  Handle handle;
  std::vector<hsize_t> dims;
  std::size_t stored_bytes = 0;  // of one element
  ElementType type = ElementType::float64;
  std::string stored_type;  // "int32", "big-endian float64"
  bool is_column = false;   // marked by MATLAB or Octave
  std::string problem;      // "is complex (...)": why it cannot be read as numbers
};

/// Opens the dataset at the absolute `path`; a group that Octave wrote stands for its value. The
/// handle is empty where there is no such object or it is no dataset. Nothing outside the file is
/// opened. Errors: InputError where the path leads through a link to another file, or is damaged.
Dataset open_dataset(const InputFile& file, const std::string& path);

/// Refuses what cannot be read, before any of it is: `problem`, a filter that is not installed,
/// sizes that cannot be. Errors: InputError, LimitError.
void require_readable(const InputFile& file, const Dataset& dataset);

/// Whether Octave wrote the group at `path` as one variable.
bool is_octave_variable(const InputFile& file, const std::string& path);

/// "1000x64x64".
std::string shape_text(std::span<const hsize_t> dims);

}  // namespace qrtool::hdf5
