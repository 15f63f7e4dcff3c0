// SPDX-License-Identifier: Apache-2.0
// format.hpp: NumPy's formats in the list of formats.
#pragma once

#include "io/format.hpp"

namespace qrtool {

/// The format of a file with one array.
extern const Format npy_format;
/// The format of a zip archive of arrays.
extern const Format npz_format;

}  // namespace qrtool
