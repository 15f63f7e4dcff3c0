// SPDX-License-Identifier: Apache-2.0
// format.hpp: Matrix Market in the list of formats.
#pragma once

#include "io/format.hpp"

namespace qrtool {

/// The format of text that begins with "%%MatrixMarket", whatever the name of the file.
extern const Format mtx_format;

}  // namespace qrtool
