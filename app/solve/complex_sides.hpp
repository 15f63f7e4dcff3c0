// SPDX-License-Identifier: Apache-2.0
// complex_sides.hpp: real numbers beside complex ones. Where A or B is complex, x is, and what is
// real beside it is read as complex numbers without an imaginary part.
#pragma once

#include <memory>

#include "app/solve/solve_inputs.hpp"

namespace qrtool {

/// The same numbers, as complex ones, which an output writes in `form`. A reader of complex numbers
/// stays as it is.
std::unique_ptr<Reader> read_as_complex(std::unique_ptr<Reader> reader, const ComplexForm& form);

/// Errors: UsageError where A and B are complex, for which there is no such option.
void require_real(const SolveInputs& inputs, const char* option);

}  // namespace qrtool
