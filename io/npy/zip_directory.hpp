// SPDX-License-Identifier: Apache-2.0
// zip_directory.hpp: looks at the parts of a zip archive that libzip passes over. Where the
// directory and what stands before a member say different things, two programs could read
// different bytes; zipfile of Python, which numpy.load uses, refuses such archives.
#pragma once

#include <string>

#include "io/npy/array.hpp"

namespace qrtool::npy {

/// Why zipfile of Python would refuse the archive, or a reason that libzip does not give; empty
/// where there is none.
std::string problem_of_directory(const OpenFile& file);

}  // namespace qrtool::npy
