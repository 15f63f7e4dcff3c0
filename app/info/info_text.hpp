// SPDX-License-Identifier: Apache-2.0
// info_text.hpp: what a file holds, in words and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/info/file_contents.hpp"

namespace qrtool {

/// `verbose` names every attribute of an output, and everything about how text is read.
std::string text_of(const FileContents& contents, bool verbose);

/// Schema qrtool.info/1.
nlohmann::ordered_json to_json(const FileContents& contents);

}  // namespace qrtool
