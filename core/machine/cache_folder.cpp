// SPDX-License-Identifier: Apache-2.0
// cache_folder.cpp: reads the environment.
#include "core/machine/cache_folder.hpp"

#include <cstdlib>
#include <string_view>

namespace qrtool {

std::optional<std::string> cache_folder() {
  // A relative path in XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
  const auto absolute = [](const char* name) {
    const char* const path = std::getenv(name);
    return path != nullptr && path[0] == '/' ? std::string_view(path) : std::string_view();
  };
  const std::string_view cache = absolute("XDG_CACHE_HOME"), home = absolute("HOME");
  if (!cache.empty()) return std::string(cache) + "/qrtool";
  if (!home.empty()) return std::string(home) + "/.cache/qrtool";
  return std::nullopt;
}

}  // namespace qrtool
