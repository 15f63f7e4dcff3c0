// SPDX-License-Identifier: Apache-2.0
// writer.hpp: matrices as text.
#pragma once

#include <memory>
#include <string>

#include "io/writer.hpp"

namespace qrtool {

/// out.csv, "Q" -> out.Q.csv; the ending is kept. Dataset "A" goes to the very name given.
std::string csv_name(const std::string& path, const std::string& dataset);

/// As create_output. Numbers are the shortest text that reads back as the same bits.
/// Errors: OutputError, also where a matrix has no elements: text cannot hold it.
std::unique_ptr<Writer> create_csv(const OutputSpec& spec);

}  // namespace qrtool
