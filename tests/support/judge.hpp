// SPDX-License-Identifier: Apache-2.0
// judge.hpp: judges the factors of matrices that attack a method, by the reports of their backend.
#pragma once

#include <iosfwd>

#include "core/batch.hpp"
#include "core/problem/problem.hpp"
#include "core/report/ratios.hpp"
#include "core/report/report.hpp"

namespace qrtool::test {

/// Counts and worst errors of some matrices. Errors are in units of the bar.
struct WorstErrors {
  index_t matrices = 0, above = 0;
  double residual = 0;
  double q_or_r = 0;  // orthogonality of Q; for R alone its backward error, where it was measured

  double worst() const;
  void include(const WorstErrors& other);

  friend std::ostream& operator<<(std::ostream& out, const WorstErrors& errors);
};

/// The errors of one matrix. It also counts as above its bar if its report says that it is not
/// finite or that R overflows, because no family has such matrices.
WorstErrors errors_in_bars(const Problem& p, const MatrixReport& report);

/// Measures the residual and the orthogonality of Q and R by plain loops, which share no code with
/// the reports. Sums of float64 matrices are in long double. Sums of float32 matrices are in
/// float64, where a product of two float32 numbers is exact.
template <class T>
Errors plain_errors(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r);

/// Enters the backward error of R alone as the report's orthogonality, and above_bar as its status
/// if the error is too large. In float64 the error of this measurement grows with the condition
/// (backward_error.cpp), so that there only matrices that one pass finished are measured. Does
/// nothing where there is a Q or where A has fewer rows than columns.
template <class T>
void measure_r(const Problem& p, MatrixView<const T> a, MatrixView<const T> r,
               MatrixReport& report);

}  // namespace qrtool::test
