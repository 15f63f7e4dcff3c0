// SPDX-License-Identifier: Apache-2.0
// format.hpp: the text that Octave writes, as a Format.
#pragma once

#include "io/format.hpp"

namespace qrtool {

extern const Format octave_format;

}  // namespace qrtool
