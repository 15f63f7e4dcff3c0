// SPDX-License-Identifier: Apache-2.0
// zip_directory.hpp: looks at the parts of a zip archive that libzip passes over. Where the
// directory and what stands before a member say different things, two programs could read
// different bytes; zipfile of Python, which numpy.load uses, refuses such archives.
#pragma once

#include <string>

#include "io/npy/array.hpp"

namespace qrtool::npy {

/// Returns the reason why Python's zipfile would refuse the archive, also if libzip would not, or
/// an empty text.
std::string problem_of_directory(const OpenFile& file);

}  // namespace qrtool::npy
