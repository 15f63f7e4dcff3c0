// SPDX-License-Identifier: Apache-2.0
// dataset.hpp: opens a dataset of a file that another program wrote, and describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/problem/problem.hpp"
#include "io/file/input_file.hpp"
#include "io/hdf5/datasets/variable.hpp"
#include "io/hdf5/structure/file.hpp"
#include "io/hdf5/structure/open_file.hpp"
#include "io/source/complex_form.hpp"

namespace qrtool::hdf5 {

/// A dataset and the properties of its elements.
struct Dataset {
  std::string path;
  std::string shown;  // for messages, escaped; an Octave variable is shown by the name of its group
  Handle handle;
  std::vector<hsize_t> dims;
  std::size_t stored_bytes = 0;  // the size of one stored element
  ElementType type = ElementType::float64;
  std::string stored_type;  // "int32", "big-endian float64"
  PartNames parts;          // of complex numbers
  OrderEvidence order;      // of the program that wrote it
  Variable variable;        // what its numbers mean
  bool is_other = false;    // there is an object, but no dataset
  bool is_scale = false;    // netCDF's coordinates of a dimension
  std::string problem;      // why it cannot be read as numbers, for example "is a compound (...)"
  std::string hint;         // what to do about the problem; empty where nothing is known
};

/// Opens the object at an absolute path, one name after another. The handle is empty if there is no
/// such object. Nothing outside the file is opened. Errors: InputError if a link leads to another
/// file or the file is damaged.
Handle open_object(const InputFile& file, const std::string& path);

/// Opens the dataset at the absolute `path`; for a group that Octave wrote, the dataset of its
/// value. The handle is empty if there is no such object, or if it is not a dataset (`is_other`).
/// Nothing outside the file is opened. Errors: InputError if a link on the path leads to another
/// file or the file is damaged.
Dataset open_dataset(const InputFile& file, const std::string& path);

/// Opens the dataset of truth values that marks the missing numbers of another dataset. They are
/// read as 0 and 1. Errors: InputError, LimitError.
Dataset open_mask(const InputFile& file, const std::string& path, const Dataset& of);

/// A dataset that a walk over the file has found.
struct FoundDataset {
  std::string path;  // of an Octave variable that of its group
  haddr_t address = HADDR_UNDEF;
  bool is_octave_variable = false;
};

/// Opens it as the function above does, without a look-up of its path.
Dataset open_dataset(const InputFile& file, const FoundDataset& found);

/// Refuses a dataset that cannot be read, before any data is read: one with a `problem`, with a
/// filter that is not installed, with a type that no program writes, or with impossible sizes.
/// Errors: InputError, LimitError.
void require_readable(const InputFile& file, const Dataset& dataset);

/// Whether Octave wrote a group as one variable. Errors: InputError.
bool is_octave_variable(const InputFile& file, hid_t group);

/// Returns the number of elements.
std::uint64_t elements_of(const Dataset& dataset);

/// Returns the dimensions as "1000x64x64".
std::string shape_text(std::span<const hsize_t> dims);

}  // namespace qrtool::hdf5
