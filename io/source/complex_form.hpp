// SPDX-License-Identifier: Apache-2.0
// complex_form.hpp: how a file writes complex numbers, so that an output has the form of its input.
#pragma once

#include <string>

namespace qrtool {

/// The names of the two parts in an HDF5 compound.
struct PartNames {
  std::string real = "r", imaginary = "i";
};

struct ComplexForm {
  PartNames names = {};          // HDF5
  char unit = 'j';               // text: i or j
  bool has_parentheses = false;  // text: (1+2j)
};

}  // namespace qrtool
