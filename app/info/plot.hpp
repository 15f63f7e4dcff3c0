// SPDX-License-Identifier: Apache-2.0
// plot.hpp: the errors of an output as a picture.
#pragma once

#include <span>
#include <string>

#include "app/info/output_summary.hpp"

namespace qrtool {

/// Returns a script for gnuplot that shows, for each error of each output, how many results have it
/// in which part of the bar.
std::string plot_script(std::span<const OutputSummary> outputs, const std::string& file);

/// Returns how many histograms the picture has.
int histograms_of(std::span<const OutputSummary> outputs);

}  // namespace qrtool
