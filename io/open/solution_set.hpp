// SPDX-License-Identifier: Apache-2.0
// solution_set.hpp: whether the files of a set of solutions, such as out.X.npy, out.se.npy and
// out.report.json, are of one run. A killed run may leave files of two.
#pragma once

#include <string>

namespace qrtool {

/// Checks that the numbers in the files of `set`, such as out.npy, have the checksum in their
/// report. Without a checksum nothing is checked. Errors: InputError if they differ, or if a file
/// cannot be read.
void require_one_run_of_solutions(const std::string& set);

/// Refuses a report beside `set` that belongs to other files: to out.mtx beside out.npy, or to
/// another run beside the coefficients of a table. Other sets are compared with their report when
/// they are read. Errors: InputError.
void require_own_report(const std::string& set);

}  // namespace qrtool
