// SPDX-License-Identifier: Apache-2.0
// factors_of_mode.hpp: which factors an output of this tool must hold.
#pragma once

#include <string>

#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {

/// The mode of a run, as its output records it.
struct RecordedMode {
  std::string mode;         // empty: not recorded
  bool is_pivoted = false;  // with --pivot
};

/// Refuses an output that lacks some of the factors of its recorded --mode. `shown` is its name,
/// escaped. If no mode is recorded, nothing is refused. Errors: InputError.
void require_factors_of_mode(const std::string& shown, const RecordedMode& recorded,
                             const StoredFactors& factors);

}  // namespace qrtool
