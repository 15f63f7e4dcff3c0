// SPDX-License-Identifier: Apache-2.0
// cpu_variants.hpp: the names by which the backend runs a variant. Private to core/cpu.
#pragma once

#include <string_view>

namespace qrtool {

inline constexpr std::string_view batched_name = "cpu/batched", tall_name = "cpu/tall",
                                  blocked_name = "cpu/blocked";

}  // namespace qrtool
