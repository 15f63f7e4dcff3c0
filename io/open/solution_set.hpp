// SPDX-License-Identifier: Apache-2.0
// solution_set.hpp: whether the files of a set of solutions, such as out.X.npy, out.se.npy and
// out.report.json, are of one run. A killed run may leave files of two.
#pragma once

#include <string>

namespace qrtool {

/// Compares the numbers of the files of `set`, such as out.npy, with the checksum in their report;
/// a report without one binds nothing. Errors: InputError where they differ, or where a file cannot
/// be read.
void require_one_run_of_solutions(const std::string& set);

/// Refuses the report beside `set` where it is not that of its files: of out.mtx beside out.npy, or
/// of another run beside the coefficients of a table. Other sets are compared with their report
/// where they are read. Errors: InputError.
void require_own_report(const std::string& set);

}  // namespace qrtool
