// SPDX-License-Identifier: Apache-2.0
// plot.hpp: the errors of an output as a picture.
#pragma once

#include <span>
#include <string>

#include "app/info/output_summary.hpp"

namespace qrtool {

/// A script for gnuplot: for each error of each output how many results have it in which part of
/// the bar.
std::string plot_script(std::span<const OutputSummary> outputs, const std::string& file);

/// How many histograms that are.
int histograms_of(std::span<const OutputSummary> outputs);

}  // namespace qrtool
