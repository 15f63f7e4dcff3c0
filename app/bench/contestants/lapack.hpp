// SPDX-License-Identifier: Apache-2.0
// lapack.hpp: LAPACK as a baseline, from the library that is installed.
#pragma once

#include <memory>

#include "app/bench/contestants/baselines.hpp"

namespace qrtool {

/// Loads geqrf and orgqr, or ungqr for complex matrices, from `file`, a LAPACK with 32-bit sizes.
/// Without a name it loads libopenblas.so.0, or liblapack.so.3 if that is missing. If there is
/// none, prepare() throws. text() names the library and its version, and says whether it is the
/// reference.
std::unique_ptr<Contestant> make_lapack(const Limits& limits, std::string_view file = {});

}  // namespace qrtool
