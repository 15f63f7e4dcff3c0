// SPDX-License-Identifier: Apache-2.0
// writer.hpp: writes the HDF5 output.
#pragma once

#include <memory>

#include "io/write/writer.hpp"

namespace qrtool {

/// Implements create_output for HDF5. qrtool(5) describes the layout: chunks of whole matrices and
/// the metadata of HDF5 1.10, both with checksums. No times are stored, so that equal results give
/// equal files.
std::unique_ptr<Writer> create_hdf5(const OutputSpec& spec);

/// Implements output_workspace_bytes for HDF5.
std::size_t hdf5_workspace_bytes(const OutputSpec& spec);

/// Implements create_output_file for HDF5.
std::unique_ptr<OutputFile> create_hdf5_file(const OutputSpec& root,
                                             std::span<const OutputSpec> planned);

}  // namespace qrtool
