// SPDX-License-Identifier: Apache-2.0
// inference.hpp: what a coefficient and its standard error say: t, p and confidence limits, as
// tables of regression have them.
#pragma once

namespace qrtool {

/// t = x / se. p: the probability that |t| is at least as large where the true coefficient is 0,
/// by Student's t with `freedom` degrees of freedom. lower, upper: x -+ q se, where q is the
/// quantile of (1 + confidence) / 2. All are NaN where se is NaN or no freedom is left.
struct Inference {
  double t, p, lower, upper;
};

/// `confidence` lies between 0 and 1; 0: no limits, which are NaN.
Inference infer(double x, double se, double freedom, double confidence);

}  // namespace qrtool
