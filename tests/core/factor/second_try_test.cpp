// SPDX-License-Identifier: Apache-2.0
// second_try_test.cpp: matrices that the first try of a CPU variant spoils come out right, whatever
// was asked for, and the better of two results is kept.
#include "core/factor/second_try.hpp"

#include "core/cpu/cpu_backend.hpp"
#include "core/report/ratios.hpp"
#include "tests/support/second_try_cases.hpp"

namespace qrtool::test::second_try_test {
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
  for (index_t b = 0; b < second_try_count; ++b) EXPECT_TRUE(same_factors(first, b, found, b)) << b;
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
  const auto line = [](double residual, double orthogonality) {
    return MatrixReport{.residual = residual,
                        .orthogonality = orthogonality,
                        .lower = 0,
                        .bars = {.residual = 1e-5, .orthogonality = 1e-5, .lower = 1e-5}};
  };
  const Mode mode = Mode::reduced;
  EXPECT_TRUE(is_better(mode, line(1e-4, 1e-6), line(1e-3, 1e-6)));
  EXPECT_FALSE(is_better(mode, line(1e-4, 1e-6), line(1e-4, 1e-6))) << "equal: the first stays";
  EXPECT_FALSE(is_better(mode, line(1e-4, 1e-2), line(1e-3, 1e-6))) << "the worst error counts";
  EXPECT_FALSE(is_better(mode, line(1e-4, nan_d), line(1, 1))) << "never NaN for a number";
  EXPECT_FALSE(is_better(mode, line(nan_d, nan_d), line(nan_d, nan_d)));
  EXPECT_TRUE(is_better(mode, line(1, 1), line(nan_d, 1e-6)));
  EXPECT_TRUE(is_better(Mode::r, line(1e-4, nan_d), line(1e-3, nan_d)));
}

TEST(SecondTry, ComparesErrorsOfDenormalsInTheirOwnBars) {
  // A = 2^-140 I has the norm 2 * 2^-140, so that rounding to float32's denormals may cost 2^-8.
  const Problem problem{.count = 1, .m = 4, .n = 4};
  const auto line = [&](double residual, double orthogonality) {
    MatrixReport entered;
    enter_errors(problem,
                 {.residual = residual,
                  .orthogonality = orthogonality,
                  .lower = 0,
                  .norm = 1,
                  .scale = -139},
                 entered);
    return entered;
  };
  const double bar = 16 * 0x1p-23;
  const MatrixReport first = line(0x1p-9, 1.5 * bar), second = line(0x1p-9 + 0x1p-10, 0.1 * bar);
  EXPECT_EQ(first.status, Status::above_bar);
  EXPECT_EQ(second.status, Status::ok);
  EXPECT_TRUE(is_better(problem.mode, second, first));
  EXPECT_FALSE(is_better(problem.mode, first, second));
}

}  // namespace
}  // namespace qrtool::test::second_try_test
