// SPDX-License-Identifier: Apache-2.0
// lapack.hpp: LAPACK as a baseline, from the library that is installed.
#pragma once

#include <cstdint>
#include <memory>

#include "app/bench/baselines.hpp"

namespace qrtool {

/// Loads geqrf and orgqr from libopenblas.so.0, or from liblapack.so.3 where the first is missing.
/// Where both are missing, prepare() throws.
std::unique_ptr<Contestant> make_lapack(const Limits& limits, std::uint64_t seed);

}  // namespace qrtool
