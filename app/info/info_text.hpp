// SPDX-License-Identifier: Apache-2.0
// info_text.hpp: what a file holds, in words, as JSON and as a picture.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "app/info/file_contents.hpp"

namespace qrtool {

/// `verbose` names every attribute of an output, and everything about how text is read.
std::string text_of(const FileContents& contents, bool verbose);

/// Returns the document, of schema qrtool.info/1.
nlohmann::ordered_json to_json(const FileContents& contents);

/// Returns a script for gnuplot that shows, for each error of each output, how many results have it
/// in which part of the bar.
std::string plot_script(std::span<const OutputSummary> outputs, const std::string& file);

/// Returns how many histograms the picture has.
int histograms_of(std::span<const OutputSummary> outputs);

}  // namespace qrtool
