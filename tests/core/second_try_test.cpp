// SPDX-License-Identifier: Apache-2.0
// second_try_test.cpp: matrices that the first try of a CPU variant spoils come out right, whatever
// was asked for, and the better of two results is kept.
#include "core/second_try.hpp"

#include "core/cpu/cpu_backend.hpp"
#include "tests/support/second_try_cases.hpp"

namespace qrtool::test {
namespace {

constexpr double nan_d = std::numeric_limits<double>::quiet_NaN();

Limits test_limits() {
  Limits limits;
  limits.host_bytes = std::size_t{1} << 30;
  limits.threads = 2;
  return limits;
}

const std::vector<SecondTryCase> cases{
    {12, 12},
    {40, 24},
    {24, 40},
    {24, 40, Mode::complete},
    {40, 24, Mode::complete, Sign::lapack},
    {40, 24, Mode::r},
    {24, 40, Mode::r, Sign::lapack},
    {40, 24, Mode::raw},
    {24, 40, Mode::raw},
    {40, 24, Mode::reduced, Sign::lapack},
    {40, 24, Mode::reduced, Sign::positive, "cpu/blocked"},
    {40, 24, Mode::reduced, Sign::positive, "cpu/eigen"},
    {3000, 5, Mode::reduced, Sign::positive, "cpu/tall"},
    {3000, 5, Mode::r, Sign::lapack, "cpu/tall"},
};

TEST(SecondTry, MendsWhatTheCpuSpoils) {
  CpuBackend backend(test_limits());
  for (const SecondTryCase& c : cases) {
    expect_second_try<float>(backend, c);
    expect_second_try<double>(backend, c);
  }
}

TEST(SecondTry, OfMixedPrecisionIsInSingle) {
  CpuBackend backend(test_limits());
  expect_second_try<float>(backend, {40, 24, Mode::reduced, Sign::positive, "", Arithmetic::mixed});
}

TEST(SecondTry, KeepsTheFirstWhereItIsBetter) {
  CpuBackend backend(test_limits());
  for (const Mode mode : {Mode::reduced, Mode::r, Mode::raw})
    expect_first_where_it_is_better<float>(backend, {40, 24, mode});
}

TEST(SecondTry, NeedsMemoryForItsWorkspace) {
  const SecondTryCase c{200, 200, Mode::reduced, Sign::positive, "cpu/blocked"};
  CpuBackend roomy(test_limits());
  const Plan plan = plan_of<double>(c, roomy);
  Limits tight = test_limits();
  tight.host_bytes = std::size_t{1} << 20;  // less than the buffers of this plan
  CpuBackend backend(tight);
  const Batch<double> a = marked_batch<double>(c);
  FactoredBatch<double> found(plan.problem);
  SpoiledBackend spoiled(backend);
  SecondTry(spoiled).factor(plan, a.view(), found.factors(), found.report);
  EXPECT_EQ(spoiled.tried_again(), 0);
  EXPECT_EQ(found.report[1].status, Status::above_bar);
  EXPECT_EQ(found.report[1].tries, 1);
}

TEST(SecondTry, NeedsAnotherWay) {
  // cpu/eigen is the only one that takes this shape by reflectors.
  const SecondTryCase c{3000, 5, Mode::reduced, Sign::positive, "cpu/eigen"};
  CpuBackend backend(test_limits());
  const Plan plan = plan_of<float>(c, backend);
  const Batch<float> a = marked_batch<float>(c);
  FactoredBatch<float> first(plan.problem), found(plan.problem);
  SpoiledBackend spoiled(backend);
  spoiled.factor(plan, a.view(), first.factors(), first.report);
  SecondTry(spoiled).factor(plan, a.view(), found.factors(), found.report);
  EXPECT_EQ(found.report[1].status, Status::above_bar);
  for (index_t b = 0; b < second_try_count; ++b) EXPECT_TRUE(same_factors(first, found, b)) << b;
}

TEST(SecondTry, IsForFiniteMatricesAboveTheirBar) {
  MatrixReport line{.status = Status::ok};
  for (const Status status : {Status::ok, Status::non_finite, Status::unchecked}) {
    line.status = status;
    EXPECT_FALSE(needs_second_try(line));
  }
  line.status = Status::above_bar;
  EXPECT_TRUE(needs_second_try(line));
  // A'A of a matrix that is nearly singular may give an R with infinite entries; reflectors give
  // such an R only where its numbers are too large.
  line.status = Status::r_overflows;
  EXPECT_FALSE(needs_second_try(line));
  line.route = Route::first_pass;
  EXPECT_TRUE(needs_second_try(line));
  line.route = Route::reflectors;
  EXPECT_FALSE(needs_second_try(line));
}

TEST(SecondTry, ComparesErrorsInBars) {
  const Problem problem{.count = 1, .m = 100, .n = 10};
  const auto line = [](double residual, double orthogonality) {
    return MatrixReport{.residual = residual, .orthogonality = orthogonality, .lower = 0};
  };
  EXPECT_TRUE(is_better(problem, line(1e-4, 1e-6), line(1e-3, 1e-6)));
  EXPECT_FALSE(is_better(problem, line(1e-4, 1e-6), line(1e-4, 1e-6))) << "equal: the first stays";
  EXPECT_FALSE(is_better(problem, line(1e-4, 1e-2), line(1e-3, 1e-6))) << "the worst error counts";
  EXPECT_FALSE(is_better(problem, line(1e-4, nan_d), line(1, 1))) << "never NaN for a number";
  EXPECT_FALSE(is_better(problem, line(nan_d, nan_d), line(nan_d, nan_d)));
  EXPECT_TRUE(is_better(problem, line(1, 1), line(nan_d, 1e-6)));
  Problem r_alone = problem;
  r_alone.mode = Mode::r;
  EXPECT_TRUE(is_better(r_alone, line(1e-4, nan_d), line(1e-3, nan_d)));
}

}  // namespace
}  // namespace qrtool::test
