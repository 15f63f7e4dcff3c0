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

/// Returns what separates the fields of a file with this ending.
char separator_of(const std::string& path);

/// Does create_output for text, but for the coefficients of a table. Each number is the shortest
/// text that gives the same bits when it is read. Errors: OutputError, also where a matrix has no
/// elements, which text cannot express.
std::unique_ptr<Writer> create_csv(const OutputSpec& spec);

}  // namespace qrtool
