// SPDX-License-Identifier: Apache-2.0
// systems.hpp: least squares by the tool itself, as `qrtool solve` solves and checks.
#pragma once

#include <memory>
#include <string>

#include "app/bench/contestants/baselines.hpp"

namespace qrtool {

/// Makes the tool a contestant, on the CPU or on the device of setup.backend. `variant` is the
/// variant that computes R, or empty.
std::unique_ptr<Contestant> make_solver(const BenchSetup& setup, std::string name,
                                        std::string variant);

}  // namespace qrtool
