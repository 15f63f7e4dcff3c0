// SPDX-License-Identifier: Apache-2.0
// writer.hpp: writes matrices as text.
#pragma once

#include <memory>
#include <string>

#include "io/factors/factor_set.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// A set of texts, with its report in out.report.csv, whatever separates their fields.
extern const FactorCodec csv_codec;

/// Returns the separator of a file with this ending.
char separator_of(const std::string& path);

/// Implements create_output for text, except for tables of coefficients. Each number is the
/// shortest text that reads back to the same bits. Errors: OutputError, also if a matrix has no
/// entries, which text cannot express.
std::unique_ptr<Writer> create_csv(const OutputSpec& spec);

}  // namespace qrtool
