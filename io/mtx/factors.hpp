// SPDX-License-Identifier: Apache-2.0
// factors.hpp: finds the Matrix Market files that factors are stored in.
#pragma once

#include <string>

#include "io/reader.hpp"

namespace qrtool {

/// Opens out.Q.mtx, out.R.mtx, ... for out.mtx. Errors: InputError, also where files of runs with
/// different --mode lie beside each other.
StoredFactors open_mtx_factors(const std::string& path);

}  // namespace qrtool
