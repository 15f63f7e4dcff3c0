// SPDX-License-Identifier: Apache-2.0
// lapack.hpp: LAPACK as a baseline, from whatever library is installed.
#pragma once

#include <cstdint>
#include <memory>

#include "app/bench/baselines.hpp"

namespace qrtool {

/// geqrf and orgqr from libopenblas.so.0, else from liblapack.so.3, loaded when this is called.
/// Where there is neither, prepare() throws.
std::unique_ptr<Contestant> make_lapack(const Limits& limits, std::uint64_t seed);

}  // namespace qrtool
