// SPDX-License-Identifier: Apache-2.0
// cache_folder.hpp: where what can be made again is kept from one process to the next.
#pragma once

#include <optional>
#include <string>

namespace qrtool {

/// Returns the folder qrtool in $XDG_CACHE_HOME or in ~/.cache, which need not exist. Nothing if
/// there is no home.
std::optional<std::string> cache_folder();

}  // namespace qrtool
