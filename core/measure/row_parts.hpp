// SPDX-License-Identifier: Apache-2.0
// row_parts.hpp: measures many rows in parts, which threads share.
#pragma once

#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/measure/error_meter.hpp"

namespace qrtool {

/// The rows of a part, and the number of threads that measure parts. If the parts follow from the
/// shape alone, the sums depend neither on the threads nor on how many rows a call brings, as long
/// as each call brings whole parts.
struct RowParts {
  index_t rows;
  int threads;
};

/// Does meter.add_rows(a, q) for many rows, part by part. r is the R that the meter was started
/// with.
template <class T>
void add_rows_by_parts(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                       const RowParts& parts, ErrorMeter& meter);

/// The sums() of every part, one after another, for add_sums_of_parts() on the meter of all rows.
/// `meter` was started with r.
template <class T>
std::vector<double> sums_of_parts(MatrixView<const T> a, MatrixView<const T> q,
                                  MatrixView<const T> r, const RowParts& parts,
                                  const ErrorMeter& meter);
void add_sums_of_parts(std::span<const double> sums, ErrorMeter& meter);

}  // namespace qrtool
