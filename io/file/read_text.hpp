// SPDX-License-Identifier: Apache-2.0
// read_text.hpp: a small file as one text.
#pragma once

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace qrtool {

/// Returns the text, or nothing if the file cannot be opened.
inline std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace qrtool
