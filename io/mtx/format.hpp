// SPDX-License-Identifier: Apache-2.0
// format.hpp: Matrix Market in the list of formats.
#pragma once

#include "io/format.hpp"

namespace qrtool {

/// Text that begins with "%%MatrixMarket", whatever its name.
extern const Format mtx_format;

}  // namespace qrtool
