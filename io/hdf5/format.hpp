// SPDX-License-Identifier: Apache-2.0
// format.hpp: HDF5 in the list of formats.
#pragma once

#include "io/format.hpp"

namespace qrtool {

/// The format of every file that no other format accepts. Its reader says what a file is that is
/// not HDF5.
extern const Format hdf5_format;

}  // namespace qrtool
