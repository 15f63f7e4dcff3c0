// SPDX-License-Identifier: Apache-2.0
// attributes.hpp: opens attributes of an object, and reads those that are text or a few numbers.
#pragma once

#include <hdf5.h>

#include <complex>
#include <string>
#include <vector>

#include "io/hdf5/datasets/dataset.hpp"

namespace qrtool::hdf5 {

/// An attribute that is there, with its type and its dimensions. Errors: InputError.
struct Attribute {
  Attribute(const InputFile& file, hid_t object, const char* name);

  Handle handle, type, space;
};

/// Whether `object` has this attribute. Errors: InputError.
bool has_attribute(const InputFile& file, hid_t object, const char* name);

/// Returns the text of a string attribute of `object`, or an empty text if there is none or it is
/// no string. Errors: InputError.
std::string string_attribute(const InputFile& file, hid_t object, const char* name);

/// Returns the numbers of an attribute of `object`. Returns none if there is no such attribute, or
/// if it holds other data or more than 16 numbers. Errors: InputError.
std::vector<double> number_attribute(const InputFile& file, hid_t object, const char* name);
/// The same of complex numbers. Real ones have the imaginary part 0.
std::vector<std::complex<double>> complex_attribute(const InputFile& file, hid_t object,
                                                    const char* name);

}  // namespace qrtool::hdf5
