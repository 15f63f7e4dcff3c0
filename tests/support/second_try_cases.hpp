// SPDX-License-Identifier: Apache-2.0
// second_try_cases.hpp: what a second try promises for a batch, checked on any backend.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "core/factor/second_try.hpp"
#include "core/matrix/matrices.hpp"
#include "core/plan/plan.hpp"
#include "core/report/ratios.hpp"
#include "tests/support/factored_batch.hpp"
#include "tests/support/spoiled_backend.hpp"

namespace qrtool::test {

/// A shape and what is asked for. The batch has seven matrices: 1, 2 and 5 are marked, 3 holds NaN.
struct SecondTryCase {
  index_t m, n;
  Mode mode = Mode::reduced;
  Sign sign = Sign::positive;
  std::string variant = {};  // forced; empty: the plan's choice
  Arithmetic arithmetic = Arithmetic::any;

  friend std::ostream& operator<<(std::ostream& out, const SecondTryCase& c) {
    return out << c.m << "x" << c.n << " " << name_of(c.mode) << " " << name_of(c.sign) << " "
               << c.variant << " " << name_of(c.arithmetic);
  }
};

inline constexpr index_t second_try_count = 7;
inline bool is_marked(index_t b) { return b == 1 || b == 2 || b == 5; }

template <class T>
Batch<T> marked_batch(const SecondTryCase& c) {
  Batch<T> a(second_try_count, c.m, c.n);
  for (index_t b = 0; b < second_try_count; ++b) {
    fill_matrix<T>({.kind = "gauss"}, b, a.view()[b]);
    if (is_marked(b)) a.view()[b](0, 0) = T(spoiled_mark);
  }
  a.view()[3](c.m / 2, c.n / 2) = std::numeric_limits<T>::quiet_NaN();
  return a;
}

template <class T>
Plan plan_of(const SecondTryCase& c, const Backend& backend) {
  const Problem problem{.count = second_try_count,
                        .m = c.m,
                        .n = c.n,
                        .type = element_type<T>,
                        .mode = c.mode,
                        .sign = c.sign,
                        .arithmetic = c.arithmetic};
  return make_plan(problem, backend.variants(), backend.limits(), c.variant);
}

/// The marked matrices come from the second try and are as good as the others; no other matrix
/// changes by a bit.
template <class T>
void expect_second_try(Backend& backend, const SecondTryCase& c) {
  SCOPED_TRACE(testing::Message() << c << " of " << sizeof(T) << " bytes");
  const Plan plan = plan_of<T>(c, backend);
  const Batch<T> a = marked_batch<T>(c);
  FactoredBatch<T> clean(plan.problem), mended(plan.problem);
  backend.factor(plan, a.view(), clean.factors(), clean.report);
  SpoiledBackend spoiled(backend);
  SecondTry(spoiled).factor(plan, a.view(), mended.factors(), mended.report);
  for (index_t b = 0; b < second_try_count; ++b) {
    const MatrixReport& line = mended.report[static_cast<std::size_t>(b)];
    EXPECT_EQ(line.tries, is_marked(b) ? 2 : 1) << b;
    EXPECT_EQ(line.status, b == 3 ? Status::non_finite : Status::ok) << b << " " << line.residual;
    if (!is_marked(b)) {
      EXPECT_TRUE(same_factors(clean, b, mended, b)) << b;
      continue;
    }
    EXPECT_EQ(line.route, Route::reflectors);
    // Both agree, R's signs included, as far as two ways can: Gaussian matrices are well
    // conditioned. The first try of mixed precision is coarse.
    const MatrixView<T> expected = clean.r_of(b), found = mended.r_of(b);
    const double u = precision_of(element_type<T>).u, rows = static_cast<double>(c.m);
    const double most = c.arithmetic == Arithmetic::mixed ? 0.1 : 1e4 * u * std::sqrt(rows);
    for (index_t i = 0; i < std::min(c.m, c.n); ++i)
      for (index_t j = i; j < c.n; ++j)
        ASSERT_NEAR(found(i, j), expected(i, j), most) << b << ": " << i << " " << j;
  }
}

/// A second try that is worse than the first leaves the factors and the errors of the first.
template <class T>
void expect_first_where_it_is_better(Backend& backend, const SecondTryCase& c) {
  SCOPED_TRACE(testing::Message() << c);
  const Plan plan = plan_of<T>(c, backend);
  const Batch<T> a = marked_batch<T>(c);
  FactoredBatch<T> first(plan.problem), kept(plan.problem);
  SpoiledBackend spoiled(backend, true, 0.01F, 0.5F);
  spoiled.factor(plan, a.view(), first.factors(), first.report);
  SecondTry(spoiled).factor(plan, a.view(), kept.factors(), kept.report);
  EXPECT_EQ(spoiled.tried_again(), 3);
  for (index_t b = 0; b < second_try_count; ++b) {
    const MatrixReport& line = kept.report[static_cast<std::size_t>(b)];
    EXPECT_TRUE(same_factors(first, b, kept, b)) << b;
    EXPECT_EQ(line.tries, 1);
    EXPECT_EQ(line.status, first.report[static_cast<std::size_t>(b)].status);
  }
}

}  // namespace qrtool::test
