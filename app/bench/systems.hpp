// SPDX-License-Identifier: Apache-2.0
// systems.hpp: least squares by the tool itself, as `qrtool solve` solves and checks.
#pragma once

#include <memory>
#include <string>

#include "app/bench/baselines.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// The systems of a case: default rank tolerance, no standard errors.
SolveProblem systems_of(const Problem& problem);

/// The tool on the CPU or on the device of setup.backend. `variant`: of R, or empty.
std::unique_ptr<Contestant> make_solver(const BenchSetup& setup, std::string name,
                                        std::string variant);

}  // namespace qrtool
