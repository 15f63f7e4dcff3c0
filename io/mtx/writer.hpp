// SPDX-License-Identifier: Apache-2.0
// writer.hpp: writes a matrix as a Matrix Market file.
#pragma once

#include <cstddef>
#include <memory>

#include "io/factors/factor_set.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// A set of Matrix Market files, with its report as JSON.
extern const FactorCodec mtx_codec;

/// Implements create_output for names that end in .mtx: one file per dataset, and the report as
/// JSON. Each number is the shortest text that reads back to the same bits. Errors: UsageError for
/// more than one matrix, which the format cannot hold; OutputError.
std::unique_ptr<Writer> create_mtx(const OutputSpec& spec);
/// Implements output_workspace_bytes for these outputs.
std::size_t mtx_workspace_bytes(const OutputSpec& spec);

}  // namespace qrtool
