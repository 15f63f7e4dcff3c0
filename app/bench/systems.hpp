// SPDX-License-Identifier: Apache-2.0
// systems.hpp: least squares by the tool itself, as `qrtool solve` solves and checks.
#pragma once

#include <memory>
#include <string>

#include "app/bench/baselines.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// Returns the systems of a case, with the default rank tolerance and without standard errors.
SolveProblem systems_of(const Problem& problem, BenchTask task, double ridge);

/// The same problem with so many rows of A.
inline Problem with_rows(Problem problem, index_t rows) {
  problem.m = rows;
  return problem;
}

/// Makes the tool a contestant, on the CPU or on the device of setup.backend. `variant` is the
/// variant that computes R, or empty.
std::unique_ptr<Contestant> make_solver(const BenchSetup& setup, std::string name,
                                        std::string variant);

}  // namespace qrtool
