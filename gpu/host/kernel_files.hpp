// SPDX-License-Identifier: Apache-2.0
// kernel_files.hpp: built kernels on disk, in $XDG_CACHE_HOME/qrtool or ~/.cache/qrtool. With
// QRTOOL_CACHE=off there are none. Private to gpu/host.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qrtool {

/// The image that was kept for a key, which may be of any length; none where there is no file, or
/// a damaged one.
std::optional<std::string> kept_kernels(std::string_view key);
/// Keeps an image. Where the disk does not take it, nothing happens.
void keep_kernels(std::string_view key, std::string_view image);

}  // namespace qrtool
