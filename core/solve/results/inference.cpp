// SPDX-License-Identifier: Apache-2.0
// inference.cpp: Student's t by Boost.Math.
#include "core/solve/results/inference.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "core/report/report.hpp"

namespace qrtool {

Inference infer(double x, double se, double freedom, double confidence) {
  Inference result{not_measured, not_measured, not_measured, not_measured};
  if (!(freedom > 0) || std::isnan(x) || std::isnan(se)) return result;
  result.t = x / se;  // infinite where the fit is exact
  if (std::isnan(result.t)) return result;
  const boost::math::students_t student(freedom);
  result.p = std::isinf(result.t) ? 0 : 2 * cdf(complement(student, std::abs(result.t)));
  if (confidence <= 0) return result;
  const double half = quantile(complement(student, (1 - confidence) / 2)) * se;
  result.lower = x - half;
  result.upper = x + half;
  return result;
}

}  // namespace qrtool
