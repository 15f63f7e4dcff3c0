// SPDX-License-Identifier: Apache-2.0
// heap_texts.hpp: reads the texts of an attribute that have no fixed length. HDF5 would allocate
// what the file claims as their lengths, and write beyond that where the heap holds more.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <vector>

#include "io/hdf5/structure/open_file.hpp"

namespace qrtool::hdf5 {

/// Makes the library return a text of variable length as the file stores it: its length and its
/// place. It is called once, when the library is set up. Returns a negative number if HDF5 reports
/// an error.
herr_t register_stored_texts();

/// Returns the texts of an attribute of `count` strings of variable length, each up to its first
/// NUL. Together they have no more bytes than the file. Errors: InputError if the file is damaged.
std::vector<std::string> heap_texts(const InputFile& file, hid_t attribute, std::size_t count);

/// Throws an InputError that says why an attribute cannot be read.
[[noreturn]] void throw_damaged_attribute(const InputFile& file, const std::string& cause);

}  // namespace qrtool::hdf5
