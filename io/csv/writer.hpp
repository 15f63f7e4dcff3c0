// SPDX-License-Identifier: Apache-2.0
// writer.hpp: writes matrices as text.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "io/writer.hpp"

namespace qrtool {

/// The datasets that factors of any --mode, and solutions, may have, each in a file of its own.
inline constexpr std::array factor_names{"Q", "R", "V", "tau", "X", "se"};

/// The name of the file for a dataset: out.Q.csv for out.csv and "Q", with the ending kept. The
/// file of dataset "A" has the name itself.
std::string csv_name(const std::string& path, const std::string& dataset);

/// Does create_output for text. Each number is the shortest text that gives the same bits when it
/// is read. Errors: OutputError, also where a matrix has no elements, which text cannot express.
std::unique_ptr<Writer> create_csv(const OutputSpec& spec);

}  // namespace qrtool
