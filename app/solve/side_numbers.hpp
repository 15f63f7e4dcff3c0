// SPDX-License-Identifier: Apache-2.0
// side_numbers.hpp: how the numbers of A, B and weights are read: from any place on, as complex
// ones, and weights in the range of the type in which is computed. Where A or B is complex, x is,
// and what is real beside it is read as complex numbers without an imaginary part.
#pragma once

#include <memory>

#include "app/solve/solve_inputs.hpp"
#include "io/read/part_reader.hpp"

namespace qrtool {

/// Parts of rows are read of real numbers alone; null: rows are read as a whole.
PartReader* reader_of_parts(Reader& reader);

/// Reads `count` numbers, real or complex, of an array, beginning with number `first`; both are
/// multiples of the last stored dimension, or of 1 for a vector.
template <class T>
void read_numbers(Reader& reader, index_t first, index_t count, T* out);

/// to (rows x p) := rows `first`, ... of p right sides, the first of which is at `place`, in B or
/// in weights of its shape.
template <class T>
void read_sides(Reader& reader, const SidePlace& place, index_t first, MatrixView<T> to);

/// Fills `w` with the numbers `first`, first + step, ... of the array. Errors: InputError if a
/// weight is negative, NaN or infinite.
template <class T>
void require_weights(const Reader& reader, const T* w, index_t count, index_t first,
                     index_t step = 1);

/// Returns a reader that gives the numbers of `reader` as complex numbers; an output writes them in
/// `form`. A reader of complex numbers is returned unchanged.
std::unique_ptr<Reader> read_as_complex(std::unique_ptr<Reader> reader, const ComplexForm& form);

/// Errors: UsageError if A and B are complex, for which this option does not exist.
void require_real(const SolveInputs& inputs, const char* option);

/// Where a weight w > 0 is no normal number of `type`, it divides all weights by a power of four
/// 2^e before they are rounded, and keeps e in `inputs`. The x that minimises
///
///     sum_i w_i (b - A x)_i^2 + ridge ||x||^2
///
/// stays the same when the ridge is divided by 2^e as well; the weighted residual norm is then
/// multiplied by 2^(e/2). The weights are read once for it, if they are stored as float64 and
/// `type` is float32. Errors: InputError where no power of four brings all of them into the range.
void fit_weights(SolveInputs& inputs, ElementType type);

}  // namespace qrtool
