// SPDX-License-Identifier: Apache-2.0
// writer.hpp: the HDF5 output.
#pragma once

#include <memory>

#include "io/writer.hpp"

namespace qrtool {

/// As create_output. The layout is in qrtool(5): chunks of whole matrices with checksums, metadata
/// of HDF5 1.10 with checksums, no times, so that equal results are equal files.
std::unique_ptr<Writer> create_hdf5(const OutputSpec& spec);

}  // namespace qrtool
