// SPDX-License-Identifier: Apache-2.0
// name_dimensions.hpp: gives the dimensions of an output the names that those of the input have.
#pragma once

#include "core/solve/shapes.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Names the dimensions of factors: rows of Q, columns of R and leading ones as in `source`, the
/// other one "factor". Does nothing if the source has no names, or a name twice.
void name_dimensions_of_factors(const Source& source, OutputSpec& spec);

/// Names the dimensions of solutions as those of B, with "coefficient" for B's rows, whose
/// coordinate is the names of the terms, if they have any.
void name_dimensions_of_solutions(const Source& b, const RightSides& sides,
                                  const std::vector<std::string>& terms, OutputSpec& spec);

}  // namespace qrtool
