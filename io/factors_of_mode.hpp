// SPDX-License-Identifier: Apache-2.0
// factors_of_mode.hpp: which factors an output of this tool must hold.
#pragma once

#include <string>

#include "io/reader.hpp"

namespace qrtool {

/// Refuses an output that lacks some of the factors of the --mode that it records. `shown` is its
/// name, escaped; `mode` is empty where none is recorded, and then nothing is refused. Errors:
/// InputError.
void require_factors_of_mode(const std::string& shown, const std::string& mode,
                             const StoredFactors& factors);

}  // namespace qrtool
