// SPDX-License-Identifier: Apache-2.0
// complex_hint.hpp: what a message says where complex numbers are refused. Private to io.
#pragma once

namespace qrtool {

inline constexpr const char* complex_hint =
    "complex numbers are for factor, verify and info, and for A and B of solve, each a file or a "
    "dataset of its own";

}  // namespace qrtool
