// SPDX-License-Identifier: Apache-2.0
// complex_test.cpp: complex factors of every mode, type and kind of matrix are within the plain
// bar, and their errors are measured as plain loops in long double find them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/eigen/form_q.hpp"
#include "core/error.hpp"
#include "core/factor/second_try.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/report/ratios.hpp"
#include "tests/support/complex_errors.hpp"

namespace qrtool::complex_test {
namespace {

using test::WideMatrix;

constexpr std::pair<index_t, index_t> shapes[] = {{1, 1},   {2, 1},  {1, 4},   {3, 3},   {5, 8},
                                                  {16, 16}, {17, 9}, {33, 33}, {60, 20}, {20, 60},
                                                  {50, 49}, {97, 5}, {300, 3}};

Limits test_limits() {
  Limits limits;
  limits.host_bytes = std::size_t{1} << 30;
  limits.threads = 2;
  return limits;
}

template <class T>
class ComplexTest : public testing::Test {};
using Types = testing::Types<std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(ComplexTest, Types);

/// A batch, its factors, filled with NaN first, and its report.
template <class T>
struct Case {
  Problem problem;
  Batch<T> a, q, r, v, tau;
  std::vector<MatrixReport> report;

  explicit Case(Problem p) : problem(p) {
    problem.type = element_type<T>;
    const auto make = [&](index_t rows, index_t cols) {
      Batch<T> batch(p.count, rows, cols);
      const Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
      std::fill_n(batch.view().data, p.count * rows * cols, T(nan, nan));
      return batch;
    };
    a = make(p.m, p.n);
    if (p.wants_q()) q = make(p.m, p.q_cols());
    if (p.mode != Mode::raw) r = make(p.r_rows(), p.n);
    if (p.mode == Mode::raw) v = make(p.m, p.n);
    if (p.mode == Mode::raw) tau = make(1, p.k());
    report.resize(static_cast<std::size_t>(p.count));
  }
  void fill(const std::string& kind, std::uint64_t seed = 3) {
    for (index_t b = 0; b < problem.count; ++b)
      fill_matrix<T>({.kind = kind, .seed = seed}, b, a.view()[b]);
  }
  void run() {
    CpuBackend backend(test_limits());
    SecondTry tries(backend);
    const Plan plan = make_plan(problem, backend.variants(), backend.limits());
    tries.factor<T>(plan, a.view(), {q.view(), r.view(), v.view(), tau.view()}, report);
  }
  Errors bars_for(const test::PlainErrors& errors, index_t b) const {
    return {.norm = std::ldexp(errors.norm_a, -report[static_cast<std::size_t>(b)].scale),
            .scale = report[static_cast<std::size_t>(b)].scale};
  }
};

/// Compares with the plain bar what plain loops find in the factors.
template <class T>
void expect_within_bars(const Case<T>& c, index_t b, const WideMatrix& q, const WideMatrix& r) {
  const WideMatrix a(c.a.view()[b]);
  const test::PlainErrors errors = test::plain_errors(a, q, r);
  const Bars bars =
      standard_bars(c.problem.m, c.problem.n, precision_of(c.problem), c.bars_for(errors, b));
  EXPECT_LE(errors.residual, bars.residual);
  EXPECT_LE(errors.orthogonality, bars.orthogonality);
  EXPECT_EQ(errors.lower, 0);
  const MatrixReport& line = c.report[static_cast<std::size_t>(b)];
  EXPECT_EQ(line.status, Status::ok);
  EXPECT_NEAR(line.residual, errors.residual, 0.1 * bars.residual);
  // Of reflectors the program measures the Q that it forms, with the rounding errors of forming it.
  if (c.problem.mode != Mode::raw) {
    EXPECT_NEAR(line.orthogonality, errors.orthogonality, 0.1 * bars.orthogonality);
  }
}

/// Both modes with Q and both signs, in turn.
TYPED_TEST(ComplexTest, FactorsOfEveryKindAreWithinTheBar) {
  using T = TypeParam;
  int turn = 0;
  for (const auto& [m, n] : shapes)
    for (const MatrixKind& kind : matrix_kinds()) {
      const Mode mode = turn % 3 == 0 && m < 100 ? Mode::complete : Mode::reduced;
      const Sign sign = turn++ % 2 == 0 ? Sign::lapack : Sign::positive;
      SCOPED_TRACE(testing::Message() << m << "x" << n << " " << kind.name << " " << name_of(mode)
                                      << " " << name_of(sign));
      Case<T> c({.count = 1, .m = m, .n = n, .mode = mode, .sign = sign});
      c.fill(std::string(kind.name));
      c.run();
      expect_within_bars(c, 0, WideMatrix(c.q.view()[0]), WideMatrix(c.r.view()[0]));
      for (index_t i = 0; i < c.problem.k(); ++i) {
        const T pivot = c.r.view()[0](i, i);
        EXPECT_EQ(pivot.imag(), 0);
        if (sign == Sign::positive) {
          EXPECT_GE(pivot.real(), 0);
        }
      }
    }
}

TYPED_TEST(ComplexTest, ReflectorsAreUnitaryAndGiveAandR) {
  using T = TypeParam;
  const double u = precision_of(element_type<T>).u;
  for (const auto& [m, n] : shapes)
    for (const MatrixKind& kind : matrix_kinds()) {
      SCOPED_TRACE(testing::Message() << m << "x" << n << " " << kind.name);
      Case<T> c({.count = 1, .m = m, .n = n, .mode = Mode::raw, .sign = Sign::lapack});
      c.fill(std::string(kind.name));
      c.run();
      const WideMatrix v(c.v.view()[0]), tau(c.tau.view()[0]);
      WideMatrix r(c.problem.k(), n);
      for (index_t i = 0; i < r.rows; ++i)
        for (index_t j = i; j < n; ++j) r(i, j) = v(i, j);
      expect_within_bars(c, 0, test::q_of_reflectors(v, tau, c.problem.k()), r);
      for (index_t k = 0; k < tau.cols; ++k) {
        EXPECT_EQ(r(k, k).imag(), 0);
        long double vv = 1;
        for (index_t i = k + 1; i < m; ++i) vv += std::norm(v(i, k));
        const test::Wide t = tau(0, k);
        if (t == test::Wide(0)) continue;
        EXPECT_NEAR(static_cast<double>(2 * t.real() / (std::norm(t) * vv)), 1,
                    u * static_cast<double>(std::max<index_t>(m, 16)));
        EXPECT_GE(t.real(), 1 - u);
        EXPECT_LE(std::abs(t - test::Wide(1)), 1 + 4 * u);
      }
    }
}

/// Mode r gives the R of mode reduced, whose residual is then that of A^H A.
TYPED_TEST(ComplexTest, RAloneIsTheSameR) {
  using T = TypeParam;
  for (const auto& [m, n] : shapes) {
    SCOPED_TRACE(testing::Message() << m << "x" << n);
    Case<T> with_q({.count = 1, .m = m, .n = n}),
        alone({.count = 1, .m = m, .n = n, .mode = Mode::r});
    with_q.fill("gauss");
    alone.fill("gauss");
    with_q.run();
    alone.run();
    EXPECT_EQ(WideMatrix(with_q.r.view()[0]).data, WideMatrix(alone.r.view()[0]).data);
    EXPECT_EQ(alone.report[0].status, Status::ok);
    const WideMatrix a(alone.a.view()[0]), r(alone.r.view()[0]);
    const double residual = test::norm(test::difference(test::product(test::adjoint(a), a),
                                                        test::product(test::adjoint(r), r))) /
                            (test::norm(a) * test::norm(a));
    EXPECT_NEAR(alone.report[0].residual, residual, 0.1 * alone.report[0].bars.residual);
    EXPECT_TRUE(std::isnan(alone.report[0].orthogonality));
  }
}

/// Damaged factors: every error is far above rounding, so that the meter must agree in digits.
TYPED_TEST(ComplexTest, ErrorsAreThoseOfPlainLoops) {
  using T = TypeParam;
  for (const auto& [m, n] : shapes) {
    SCOPED_TRACE(testing::Message() << m << "x" << n);
    const index_t k = std::min(m, n);
    Batch<T> a(1, m, n), q(1, m, k), r(1, k, n);
    fill_matrix<T>({.seed = 1}, 0, a.view()[0]);
    fill_matrix<T>({.seed = 2}, 0, q.view()[0]);
    fill_matrix<T>({.seed = 3}, 0, r.view()[0]);  // full, with a complex diagonal
    const test::PlainErrors plain = test::plain_errors(
        WideMatrix(a.view()[0]), WideMatrix(q.view()[0]), WideMatrix(r.view()[0]));
    ErrorMeter meter(m, n, k, k, 1, /*is_complex=*/true);
    const int scale = magnitude_of<T>(a.view()[0]).scale();
    const Errors errors = meter.measure<T>(a.view()[0], q.view()[0], r.view()[0], scale);
    EXPECT_NEAR(errors.residual, plain.residual, 1e-12 * plain.residual);
    EXPECT_NEAR(errors.orthogonality, plain.orthogonality, 1e-12 * plain.orthogonality);
    EXPECT_NEAR(errors.lower, plain.lower, 1e-12 * plain.lower);
    EXPECT_NEAR(errors.diagonal_ratio, plain.diagonal_ratio, 1e-12);
    EXPECT_NEAR(std::ldexp(errors.norm, scale), plain.norm_a, 1e-12 * plain.norm_a);
  }
}

TYPED_TEST(ComplexTest, APowerOfTwoChangesNoDigit) {
  using T = TypeParam;
  const int most = sizeof(Real<T>) == 4 ? 100 : 900;
  Case<T> c({.count = 1, .m = 20, .n = 7}), raised({.count = 1, .m = 20, .n = 7});
  c.fill("gauss");
  c.run();
  for (const int power : {-most, 30, most}) {
    const auto factor = static_cast<Real<T>>(std::ldexp(1.0, power));
    for (index_t i = 0; i < 140; ++i) raised.a.view().data[i] = c.a.view().data[i] * factor;
    raised.run();
    for (index_t i = 0; i < 140; ++i) EXPECT_EQ(raised.q.view().data[i], c.q.view().data[i]);
    for (index_t i = 0; i < 49; ++i)
      EXPECT_EQ(raised.r.view().data[i], c.r.view().data[i] * factor);
    EXPECT_EQ(raised.report[0].status, Status::ok);
    EXPECT_EQ(raised.report[0].scale, c.report[0].scale + power);
  }
}

TYPED_TEST(ComplexTest, NonFinitePartsStayAlone) {
  using T = TypeParam;
  constexpr Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
  constexpr Real<T> inf = std::numeric_limits<Real<T>>::infinity();
  Case<T> good({.count = 3, .m = 6, .n = 4});
  good.fill("gauss");
  good.run();
  for (const T bad : {T(nan, 0), T(0, nan), T(inf, 1), T(1, -inf)}) {
    Case<T> c({.count = 3, .m = 6, .n = 4});
    c.fill("gauss");
    c.a.view()[1](5, 3) = bad;
    c.run();
    EXPECT_EQ(c.report[1].status, Status::non_finite);
    for (index_t i = 0; i < 24; ++i) {
      const T x = c.q.view()[1].data[i];
      EXPECT_TRUE(std::isnan(x.real()) && std::isnan(x.imag()));
      EXPECT_EQ(c.q.view()[0].data[i], good.q.view()[0].data[i]);
      EXPECT_EQ(c.q.view()[2].data[i], good.q.view()[2].data[i]);
    }
  }
}

TYPED_TEST(ComplexTest, AnRBeyondTheTypeIsNamed) {
  using T = TypeParam;
  const Real<T> most = std::numeric_limits<Real<T>>::max();
  Case<T> c({.count = 1, .m = 4, .n = 2});
  std::fill_n(c.a.view().data, 8, T(most, most));
  c.run();
  EXPECT_EQ(c.report[0].status, Status::r_overflows);
}

TEST(ComplexPlan, OtherVariantsRefuseByName) {
  CpuBackend backend(test_limits());
  Problem problem{.count = 1, .m = 2000, .n = 8, .type = ElementType::complex64};
  for (const Variant& variant : backend.variants()) {
    const Fit fit = variant.takes(problem, backend.limits());
    EXPECT_EQ(fit.ok, variant.numbers != Numbers::real) << variant.name;
    if (!fit.ok) {
      EXPECT_EQ(fit.reason, "takes no complex matrices");
    }
  }
  EXPECT_EQ(make_plan(problem, backend.variants(), backend.limits()).variant->name, "cpu/tall");
  problem.m = 8;
  EXPECT_EQ(make_plan(problem, backend.variants(), backend.limits()).variant->name, "cpu/complex");
}

TEST(ComplexPlan, AMatrixLargerThanMemoryGoesByRowsWhereItIsTall) {
  Limits limits = test_limits();
  limits.host_bytes = std::size_t{1} << 24;
  CpuBackend backend(limits);
  Problem problem{.count = 1, .m = 1000000, .n = 10, .type = ElementType::complex64};
  for (const Sign sign : {Sign::positive, Sign::lapack}) {
    problem.sign = sign;
    const Plan plan = make_plan(problem, backend.variants(), limits);
    EXPECT_TRUE(plan.by_rows());
    EXPECT_LE(plan.host_bytes, limits.host_bytes);
    EXPECT_EQ(plan.variant, make_plan(problem, backend.variants(), test_limits()).variant);
  }
  problem.mode = Mode::raw;
  EXPECT_THROW(make_plan(problem, backend.variants(), limits), LimitError);
  problem = {.count = 1, .m = 3000, .n = 2000, .type = ElementType::complex64};
  EXPECT_THROW(make_plan(problem, backend.variants(), limits), LimitError);
}

}  // namespace
}  // namespace qrtool::complex_test
